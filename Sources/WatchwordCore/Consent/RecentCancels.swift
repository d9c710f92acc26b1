public import WatchwordProtocol

/// The questions that a person cancelled at an agent a moment ago: programs that come with the same are cancelled without a
/// window of their own (semantics rule 20).
///
/// Times are durations since any one start; they never go back.
public struct RecentCancels: Sendable {
    /// What makes two questions the same for the person who answers.
    public struct Subject: Sendable, Hashable {
        let space: ProtectionSpace
        /// The hash of the certificate that the question is about.
        let certificate: [UInt8]?

        public init(_ challenge: Challenge) {
            space = challenge.protectionSpace
            if case .serverTrust(let facts)? = challenge.connection {
                certificate = facts.chain.first?.sha256
            } else {
                certificate = nil
            }
        }
    }

    private struct Cancel {
        let end: Duration
        /// The programs that were let ask again since.
        var resumed: Set<ExactText> = []
    }

    private var cancels: [Subject: Cancel] = [:]

    public init() {}

    public mutating func note(_ challenge: Challenge, now: Duration) {
        cancels = cancels.filter { $0.value.end > now }
        // Rather asked once more than kept without a limit.
        if cancels.count >= Limits.recentCancels { cancels = [:] }
        cancels[Subject(challenge)] = Cancel(end: now + Limits.cancelMemory)
    }

    /// - Parameter program: as `WatchwordProtocol.Subject.text` has it.
    public func covers(_ challenge: Challenge, of program: ExactText, now: Duration) -> Bool {
        cancels[Subject(challenge)].map { now < $0.end && !$0.resumed.contains(program) } ?? false
    }

    /// What was cancelled until now counts for the other programs only.
    public mutating func resume(_ program: ExactText) {
        for subject in cancels.keys { cancels[subject]?.resumed.insert(program) }
    }
}
