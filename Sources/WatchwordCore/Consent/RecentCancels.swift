public import WatchwordProtocol

/// The questions that a person recently cancelled at an agent. The same question of another fetch, of any program, is
/// then cancelled without a prompt (SEMANTICS rule 20).
///
/// All times are durations since one arbitrary start and never decrease.
public struct RecentCancels: Sendable {
    /// Identifies a question: two questions with equal topics are the same.
    public struct Topic: Sendable, Hashable {
        let space: ProtectionSpace
        /// The hash of the certificate that the question is about.
        let certificate: [UInt8]?
        let exceptionalKey: [UInt8]?
        let namedProxy: String?

        public init(_ challenge: Challenge) {
            space = challenge.protectionSpace
            (exceptionalKey, namedProxy) = (challenge.exceptionalKey, challenge.namedProxy)
            if case .serverTrust(let facts)? = challenge.connection {
                certificate = facts.chain.first?.sha256
            } else {
                certificate = nil
            }
        }
    }

    private struct Cancel {
        let end: Duration
        /// The programs that have been resumed since then, and may ask again.
        var resumed: Set<ExactText> = []
    }

    private var cancels: [Topic: Cancel] = [:]

    public init() {}

    public mutating func record(_ challenge: Challenge, now: Duration) {
        cancels = cancels.filter { $0.value.end > now }
        // A full table is emptied, which only causes extra prompts.
        if cancels.count >= Limits.recentCancels { cancels = [:] }
        cancels[Topic(challenge)] = Cancel(end: now + Limits.cancelMemory)
    }

    /// Whether a person recently cancelled the same question, and `program` has not been resumed since then.
    /// - Parameter program: the program in the form of `Subject.text`.
    // guard: a-cancel-is-remembered
    public func covers(_ challenge: Challenge, of program: ExactText, now: Duration) -> Bool {
        cancels[Topic(challenge)].map { now < $0.end && !$0.resumed.contains(program) } ?? false
    }

    /// Lets `program` ask again; earlier cancels still count for other programs.
    public mutating func resume(_ program: ExactText) {
        for topic in cancels.keys { cancels[topic]?.resumed.insert(program) }
    }
}
