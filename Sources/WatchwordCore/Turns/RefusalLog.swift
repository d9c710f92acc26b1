internal import WatchwordProtocol

/// What servers have refused lately, for the fetches that were under way then: a password that was wrong for one of them
/// is wrong for all, and none of the others needs to send it (semantics rule 22). A fetch that starts later tries anew.
struct RefusalLog: Sendable {
    struct Refusal: Sendable, Equatable {
        let number: Int
        /// The line in which it was tried.
        let key: SpaceTurns.Key
        let credential: LoginCredential
        let source: CredentialSource
    }

    private static let capacity = 256

    private var refusals: [Refusal] = []
    /// Of the last refusal: what comes after it is news to a fetch that starts now.
    private(set) var lastNumber = 0

    mutating func note(_ credential: LoginCredential, _ source: CredentialSource, in key: SpaceTurns.Key) {
        lastNumber += 1
        refusals.append(Refusal(number: lastNumber, key: key, credential: credential, source: source))
        let surplus = OriginShare.surplus(in: refusals, limit: Self.capacity) { Challenger($0.key.space) }
        if let surplus { refusals.remove(at: surplus) }
    }

    func since(_ number: Int) -> ArraySlice<Refusal> {
        let first = refusals.firstIndex { $0.number > number } ?? refusals.endIndex
        return refusals[first...]
    }

    /// Whether that was refused after the refusal `number`.
    func hasRefused(_ credential: LoginCredential, in space: ProtectionSpace, since number: Int) -> Bool {
        lastNumber > number
            && since(number).contains { $0.key.space.mayBe(space) && $0.credential.isSame(as: credential) }
    }

    /// All fetches that were under way are over.
    mutating func forget() { refusals = [] }
}
