internal import WatchwordProtocol

/// The state that all fetches share, and the environment of the current event.
struct FetchContext: Sendable {
    /// The environment when the current event arrived.
    var environment = FetchEnvironment.none
    var session = SessionCache()
    var keyring = KeyringRecord()
    var queues = AuthenticationQueues()
    var forgets = ForgetLog()
    var refusals = RefusalLog()
    var identities = ConnectionIdentities()
    var decisions = TrustAndCertificateCache()
    var upstreams = UpstreamHealth()
    var consents = ConsentBook()
    var proofNonces = ProofNonces()
    /// Whether the broker is locked: stored credentials are neither used nor added.
    var isLocked = false
    var outbox = FetchOutbox()

    var now: Duration { environment.now }

    /// See `AuthenticationQueues.endAttempt`.
    mutating func endAttempt(
        by fetch: FetchID, in space: ProtectionSpace? = nil, _ verdict: InFlightAttempts.Verdict = .none
    ) {
        queues.endAttempt(by: fetch, in: space, verdict, now: now)
    }

    mutating func notify(_ event: FetchEvent, of fetch: FetchID) {
        outbox.add(.effect(.notify(event), of: fetch))
    }

    mutating func add(_ effect: FetchEffect) { outbox.effects.append(effect) }

    mutating func takeEffects() -> [FetchEffect] {
        for identity in identities.takeForgotten() { outbox.effects.append(.closeConnections(identity)) }
        defer { outbox.effects = [] }
        return outbox.effects
    }
}

/// What the current event has ordered so far.
struct FetchOutbox: Sendable {
    /// In the order in which they are carried out. Audit records and verdicts come before the command of their fetch, while
    /// it exists.
    private(set) var orders: [FetchTable.Order] = []
    /// Those that follow `orders`.
    var effects: [FetchEffect] = []
    /// The waiting fetches whose deadline has changed.
    var postponed: [FetchID] = []

    mutating func takePostponed() -> [FetchID] {
        if postponed.isEmpty { return [] }
        defer { postponed = [] }
        return postponed
    }

    mutating func add(_ order: FetchTable.Order) { orders.append(order) }

    mutating func takeOrders() -> [FetchTable.Order] {
        defer { orders = [] }
        return orders
    }
}
