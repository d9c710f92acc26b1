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

    private var ends: [Subject: Duration] = [:]

    public init() {}

    public mutating func note(_ challenge: Challenge, now: Duration) {
        ends = ends.filter { $0.value > now }
        // Rather asked once more than kept without a limit.
        if ends.count >= Limits.recentCancels { ends = [:] }
        ends[Subject(challenge)] = now + Limits.cancelMemory
    }

    public func covers(_ challenge: Challenge, now: Duration) -> Bool {
        ends[Subject(challenge)].map { now < $0 } ?? false
    }
}
