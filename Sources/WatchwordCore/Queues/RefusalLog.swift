internal import WatchwordProtocol

/// Recent refusals. The fetches that were running at the time do not send a refused credential again (SEMANTICS rule
/// 22); a fetch that starts later may.
struct RefusalLog: Sendable {
    struct Refusal: Sendable, Equatable {
        let number: Int
        /// The queue in which the credential was tried.
        let key: AuthenticationQueues.Key
        let credential: LoginCredential
        let source: CredentialSource
    }

    private static let capacity = 256

    private var refusals = ChallengerTable<[Refusal]>()
    /// The number of the last refusal; only later ones concern a fetch that starts now.
    private(set) var lastNumber = 0

    mutating func record(_ credential: LoginCredential, _ source: CredentialSource, in key: AuthenticationQueues.Key) {
        lastNumber += 1
        let refusal = Refusal(number: lastNumber, key: key, credential: credential, source: source)
        refusals.append(refusal, at: Challenger(key.space), limit: Self.capacity)
    }

    /// The refusals by one server or proxy after the refusal `number`, oldest first.
    func since(_ number: Int, at challenger: Challenger) -> ArraySlice<Refusal> {
        let refusals = refusals[challenger]
        return refusals[(refusals.firstIndex { $0.number > number } ?? refusals.endIndex)...]
    }

    /// Whether `credential` was refused in `space` after the refusal `number`.
    func hasRefused(
        _ credential: LoginCredential, in space: ProtectionSpace, _ steering: AuthenticationQueues.Steering?,
        since number: Int
    ) -> Bool {
        lastNumber > number
            && since(number, at: Challenger(space)).contains {
                // guard: refusal-of-the-same-server
                $0.key.space.mayBe(space) && $0.credential.isSame(as: credential) && $0.key.steering == steering
            }
    }

    /// Forgets all refusals. Called when no fetch is running.
    mutating func forget() { refusals = ChallengerTable() }
}
