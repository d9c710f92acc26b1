internal import WatchwordProtocol

/// The record that one fetch has of one server or proxy, including its count of failures (SEMANTICS rule 7).
struct ChallengerHistory: Sendable, Equatable {
    private struct Rejection: Sendable, Hashable {
        let space: ProtectionSpace
        let scheme: String
    }

    /// The count of failed attempts (`previousFailureCount` in challenges).
    private(set) var failures = 0
    private var refused: [Attempt] = []
    private var rejected: Set<Rejection> = []
    private var refusedCertificates: [CertificateCredential] = []
    /// The logins that were sent unasked, and answered with a refusal that contains no challenge.
    var withheld: [Attempt] = []
    /// The client's answers to `auth/canAuthenticate`.
    var canAuthenticate: [ProtectionSpace: Bool] = [:]
    /// The keyring items for this server or proxy. They are looked up once, and again after anything was forgotten by
    /// hand; which of them match depends on the space and the path of each hop.
    struct FoundItems: Sendable, Equatable {
        var items: [KeyringItem] = []
        /// Whether the lookup was complete: it did not fail, and no item is locked.
        var isComplete = false
        let mark: ForgetLog.Mark

        /// - Parameter result: `nil` if the keyring could not be used.
        mutating func record(_ result: [KeyringItem]?) {
            (items, isComplete) = (result ?? [], result?.allSatisfy { !$0.isLocked } ?? false)
        }
    }

    var keyringItems: FoundItems?

    /// The logins of the netrc file, or of a configured command, for this server. `mark` is the state of the forget log
    /// when the file was read.
    struct FoundLogins: Sendable, Equatable {
        var logins: [Netrc.Login] = []
        var source = CredentialSource.netrc
        let mark: ForgetLog.Mark
    }

    var tokens = TokenSearch()
    /// `nil` before the netrc file was read.
    var netrcLogins: FoundLogins?
    /// The server's last certificate request. A failure that occurs before the handshake does not contain it.
    var certificateRequest: ClientCertificateRequest?
    /// Whether a weaker scheme needs a prompt, because a scheme has failed for another reason than a wrong password.
    var promptsBeforeDowngrade = false

    var lastRefused: Attempt? { refused.last }

    /// - Parameter others: the same attempt in each other realm in which the same response refuses it.
    mutating func recordRefusal(of attempt: Attempt, andOf others: [Attempt] = []) {
        failures += 1
        refused += others + [attempt]
    }

    /// Counts an answer with a credential that was refused before, and is not sent again (SEMANTICS rule 9).
    mutating func recordRepeatedAnswer() { failures += 1 }

    mutating func recordRejection(of challenge: AnswerableChallenge, in space: ProtectionSpace) {
        rejected.insert(Rejection(space: space, scheme: challenge.scheme))
    }

    // guard: refused-is-not-sent-again
    func hasRefused(_ credential: LoginCredential, in space: ProtectionSpace) -> Bool {
        refused.contains { $0.space == space && $0.credential.isSame(as: credential) }
    }

    /// Whether this credential, or any login of the netrc file or a command, was refused in any realm. Such a login
    /// applies to all realms of its server, so after one refusal none of them is sent.
    func hasRefusedNetrc(_ credential: LoginCredential) -> Bool {
        refused.contains { $0.source.isWithoutRealm || $0.credential.isSame(as: credential) }
    }

    func hasRejected(_ challenge: AnswerableChallenge, in space: ProtectionSpace) -> Bool {
        rejected.contains(Rejection(space: space, scheme: challenge.scheme))
    }

    mutating func recordRefusal(of certificate: CertificateCredential) {
        failures += 1
        refusedCertificates.append(certificate)
    }

    func hasRefused(_ certificate: CertificateCredential) -> Bool {
        refusedCertificates.contains { $0.isSame(as: certificate) }
    }
}
