internal import WatchwordProtocol

/// What one fetch has learnt about one server or proxy. Failures at one target say nothing about another (semantics rule 7).
struct TargetRecord: Sendable, Equatable {
    private struct Rejection: Sendable, Hashable {
        let space: ProtectionSpace
        let scheme: String
    }

    private struct TooNarrow: Sendable, Equatable {
        let credential: LoginCredential
        let realm: ExactText?
        /// `nil` where the server has not said for what.
        let scope: BearerScope?
    }

    /// What clients see as `previousFailureCount`.
    private(set) var failures = 0
    private var refused: [Attempt] = []
    private var rejected: Set<Rejection> = []
    private var tooNarrow: [TooNarrow] = []
    private var refusedCertificates: [CertificateCredential] = []
    /// What the client said to `canAuthenticate`.
    var canAuthenticate: [ProtectionSpace: Bool] = [:]
    /// What the keyring has for the server; looked up once, and again when something was forgotten by hand since then. What fits
    /// depends on the space, and on the path of the hop.
    struct FoundItems: Sendable, Equatable {
        var items: [KeyringItem] = []
        /// Whether that is all: not where the keyring has failed, or an item is locked.
        var isComplete = false
        let mark: ForgetLog.Mark

        /// - Parameter result: `nil` where the keyring could not be used.
        mutating func note(_ result: [KeyringItem]?) {
            (items, isComplete) = (result ?? [], result?.allSatisfy { !$0.isLocked } ?? false)
        }
    }

    var keyringItems: FoundItems?

    /// What the netrc file has for the server: of the file that the configuration names since `mark`.
    struct FoundLogins: Sendable, Equatable {
        var logins: [Netrc.Login] = []
        let mark: ForgetLog.Mark
    }

    /// `nil` before it was read.
    var netrcLogins: FoundLogins?
    /// What the server has said of the certificates that it takes; a failure before the connection does not say it again.
    var certificateRequest: ClientCertificateRequest?
    /// A scheme has failed for other reasons than a wrong password: a weaker one is asked for, and never taken silently.
    var asksBeforeWeaker = false

    var lastRefused: Attempt? { refused.last }

    /// - Parameter others: the same one, where it was refused in several realms at once.
    mutating func noteRefusal(of attempt: Attempt, andOf others: [Attempt] = []) {
        failures += 1
        refused += others + [attempt]
    }

    /// An answer that was refused before it was sent (semantics rule 9).
    mutating func noteRepeatedAnswer() { failures += 1 }

    mutating func noteRejection(of challenge: AnswerableChallenge, in space: ProtectionSpace) {
        rejected.insert(Rejection(space: space, scheme: challenge.scheme))
    }

    func hasRefused(_ credential: LoginCredential, in space: ProtectionSpace) -> Bool {
        refused.contains { $0.space == space && $0.credential.isSame(as: credential) }
    }

    /// An entry of the netrc file is for all realms of its server: refused in one, none is sent in any.
    func hasRefusedNetrc(_ credential: LoginCredential) -> Bool {
        refused.contains { $0.source == .netrc || $0.credential.isSame(as: credential) }
    }

    func hasRejected(_ challenge: AnswerableChallenge, in space: ProtectionSpace) -> Bool {
        rejected.contains(Rejection(space: space, scheme: challenge.scheme))
    }

    mutating func noteTooNarrow(_ token: LoginCredential, for wanted: AnswerableChallenge) {
        tooNarrow.append(TooNarrow(credential: token, realm: wanted.realm, scope: wanted.scope))
    }

    /// Whether this fetch knows that the token is not good for what `challenge` wants.
    func isTooNarrow(_ token: LoginCredential, for challenge: AnswerableChallenge) -> Bool {
        tooNarrow.contains { known in
            guard challenge.authenticationMethod == .bearer, known.realm == challenge.realm else { return false }
            let isMeant = known.scope.map { challenge.scope?.covers($0) ?? false } ?? true
            return isMeant && known.credential.isSame(as: token)
        }
    }

    mutating func noteRefusal(of certificate: CertificateCredential) {
        failures += 1
        refusedCertificates.append(certificate)
    }

    func hasRefused(_ certificate: CertificateCredential) -> Bool {
        refusedCertificates.contains { $0.isSame(as: certificate) }
    }
}
