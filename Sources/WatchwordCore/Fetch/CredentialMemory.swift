public import WatchwordProtocol

/// What all fetches share: what is remembered, who may ask, and what is to be written down.
struct CredentialMemory: Sendable {
    /// Something to be done about what is kept, that no fetch waits for.
    enum Effect: Sendable, Equatable {
        /// Into the keyring.
        case store(LoginCredential, SpacePattern)
        /// Out of the keyring, if it is still this value.
        case remove(item: String, LoginCredential)
        case changed(CredentialChange)
        /// Close what is kept open under this.
        case closeConnections(ConnectionIdentity)
        /// These certificates are trusted for good now, and no others.
        case keepTrust([TrustedKey])
        /// What is granted for good has changed.
        case keepGrants
    }

    var session: SessionCache
    var keyring: KeyringRecord
    var turns = SpaceTurns()
    var forgets = ForgetLog()
    var refusals = RefusalLog()
    var identities = ConnectionIdentities()
    var decisions = ConnectionDecisions()
    var grants = GrantBook()
    /// Since when the configuration names the netrc file that it names now.
    private(set) var netrcMark = ForgetLog().mark
    private(set) var effects: [Effect] = []
    private var notes: [AuditNote] = []
    private var verdicts: [LoginVerdict] = []
    /// Nothing that is kept is used, and nothing is kept, until somebody unlocks.
    var isLocked = false

    init(session: SessionCache = SessionCache(), keyring: KeyringRecord = KeyringRecord()) {
        self.session = session
        self.keyring = keyring
    }

    mutating func netrcChanged() {
        forgets.note(.netrcFile)
        netrcMark = forgets.mark
    }

    mutating func add(_ effect: Effect) { effects.append(effect) }

    mutating func add(_ note: AuditNote) { notes.append(note) }

    mutating func add(_ verdict: LoginVerdict) { verdicts.append(verdict) }

    mutating func takeVerdicts() -> [LoginVerdict] {
        defer { verdicts = [] }
        return verdicts
    }

    mutating func takeNotes() -> [AuditNote] {
        defer { notes = [] }
        return notes
    }

    mutating func takeEffects() -> [Effect] {
        defer { effects = [] }
        return effects + identities.takeForgotten().map { .closeConnections($0) }
    }
}

/// What has happened to a stored credential.
public struct CredentialChange: Sendable, Equatable {
    public enum Kind: String, Sendable {
        case stored, forgotten
        case defaultChanged
        /// Everything of the session.
        case cleared
    }

    public var kind: Kind
    /// `nil` when more than one space is meant.
    public var space: SpacePattern?
    public var user: ExactText?
    /// `session` or `keyring`.
    public var source: CredentialSource

    public init(_ kind: Kind, _ space: SpacePattern?, user: ExactText?, source: CredentialSource) {
        self.kind = kind
        self.space = space
        self.user = user
        self.source = source
    }
}
