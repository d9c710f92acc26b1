internal import WatchwordProtocol

/// What one event of a fetch is handled with: what is the case outside, and what all fetches share.
struct FetchContext: Sendable {
    /// As the event that is handled found it.
    var environment: FetchEnvironment
    var session: SessionCache
    var keyring: KeyringRecord
    var turns = SpaceTurns()
    var forgets = ForgetLog()
    var refusals = RefusalLog()
    var identities = ConnectionIdentities()
    var decisions = ConnectionDecisions()
    var grants = GrantBook()
    /// Nothing that is kept is used, and nothing is kept, until somebody unlocks.
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

/// What came up in an event besides the next step of the fetch.
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
