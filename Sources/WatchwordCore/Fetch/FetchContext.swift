internal import WatchwordProtocol

/// The environment of one event, and the stores that all fetches share.
struct FetchContext: Sendable {
    /// The environment when the current event arrived.
    var environment: FetchEnvironment
    var session: SessionCache
    var keyring: KeyringRecord
    var turns = SpaceTurns()
    var forgets = ForgetLog()
    var refusals = RefusalLog()
    var identities = ConnectionIdentities()
    var decisions = ConnectionDecisions()
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
    var notes: [AuditNote] = []
    var verdicts: [LoginVerdict] = []

    mutating func takeNotes() -> [AuditNote] {
        defer { notes = [] }
        return notes
    }

    mutating func takeVerdicts() -> [LoginVerdict] {
        defer { verdicts = [] }
        return verdicts
    }
}
