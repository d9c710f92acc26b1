internal import WatchwordProtocol

/// The state that all fetches share, and the environment of the current event.
struct FetchContext: Sendable {
    /// The environment when the current event arrived.
    var environment: FetchEnvironment
    var session: SessionCache
    var keyring: KeyringRecord
    var queues = AuthenticationQueues()
    var forgets = ForgetLog()
    var refusals = RefusalLog()
    var identities = ConnectionIdentities()
    var decisions = TrustAndCertificateCache()
    var upstreams = UpstreamHealth()
    var grants = GrantBook()
    /// Whether the broker is locked: stored credentials are neither used nor added.
    var isLocked = false
    var outbox = FetchOutbox()

    init(
        _ environment: FetchEnvironment = .none, session: SessionCache = SessionCache(),
        keyring: KeyringRecord = KeyringRecord()
    ) {
        self.environment = environment
        self.session = session
        self.keyring = keyring
    }

    var now: Duration { environment.now }

    mutating func add(_ effect: FetchEffect) { outbox.effects.append(effect) }

    mutating func takeEffects() -> [FetchEffect] {
        defer { outbox.effects = [] }
        return outbox.effects + identities.takeForgotten().map { .closeConnections($0) }
    }
}

/// Effects collected during one event, besides the next step of the fetch.
struct FetchOutbox: Sendable {
    var effects: [FetchEffect] = []
    var auditRecords: [AuditRecord] = []
    var verdicts: [LoginVerdict] = []

    mutating func takeAuditRecords() -> [AuditRecord] {
        defer { auditRecords = [] }
        return auditRecords
    }

    mutating func takeVerdicts() -> [LoginVerdict] {
        defer { verdicts = [] }
        return verdicts
    }
}
