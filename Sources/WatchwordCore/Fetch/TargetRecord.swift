internal import WatchwordProtocol

/// One try with one credential in one protection space.
struct Attempt: Sendable, Equatable {
    var challenge: AnswerableChallenge
    var space: ProtectionSpace
    var credential: PasswordCredential
    var source: CredentialSource
    /// The item of the keyring that the credential came from, if it was stored for exactly this space.
    var item: String?
    /// Sent before this fetch was challenged.
    var isPreemptive = false
    /// How many answers in a row said that only the nonce was too old.
    var staleAnswers = 0
}

/// What one fetch has learnt about one origin. Failures at one target say nothing about another (semantics rule 7).
struct TargetRecord: Sendable, Equatable {
    /// What clients see as `previousFailureCount`.
    private(set) var failures = 0
    private var refused: [Attempt] = []
    private var rejected: Set<ProtectionSpace> = []
    /// What the client said to `canAuthenticate`.
    var canAuthenticate: [ProtectionSpace: Bool] = [:]
    /// What the keyring has for the server; looked up at most once. What fits depends on the space, and on the path of the hop.
    var keyringItems: [KeyringItem]?

    var lastRefused: Attempt? { refused.last }

    mutating func noteRefusal(of attempt: Attempt) {
        failures += 1
        refused.append(attempt)
    }

    /// An answer that was refused before it was sent (semantics rule 9).
    mutating func noteRepeatedAnswer() { failures += 1 }

    mutating func noteRejection(of space: ProtectionSpace) { rejected.insert(space) }

    func hasRefused(_ credential: PasswordCredential, in space: ProtectionSpace) -> Bool {
        refused.contains { $0.space == space && $0.credential.isSame(as: credential) }
    }

    func hasRejected(_ space: ProtectionSpace) -> Bool { rejected.contains(space) }
}
