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
    var grants = GrantBook()
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

    mutating func add(_ effect: FetchEffect) { outbox.effects.append(effect) }

    mutating func takeEffects() -> [FetchEffect] {
        for identity in identities.takeForgotten() { outbox.effects.append(.closeConnections(identity)) }
        defer { outbox.effects = [] }
        return outbox.effects
    }
}

/// Effects collected during one event, besides the next step of the fetch.
struct FetchOutbox: Sendable {
    var effects: [FetchEffect] = []
    var auditRecords: [AuditRecord] = []
    var verdicts: [LoginVerdict] = []
    /// The waiting fetches whose deadline has changed.
    var postponed: [FetchID] = []

    mutating func takePostponed() -> [FetchID] {
        if postponed.isEmpty { return [] }
        defer { postponed = [] }
        return postponed
    }

    /// Removes the audit records and verdicts, and returns the orders for them.
    mutating func takeReports() -> [FetchTable.Order] {
        defer { (auditRecords, verdicts) = ([], []) }
        var orders: [FetchTable.Order] = []
        for record in auditRecords { orders.append(.effect(.audit(record), of: record.fetch)) }
        for verdict in verdicts { orders.append(.effect(.report(verdict), of: verdict.fetch)) }
        return orders
    }
}
