public import WatchwordProtocol

/// The programs whose prompts a person has stopped, until resumed or until the broker exits.
///
/// Programs are named by `Subject.text`. All times are durations since one arbitrary start and never decrease.
public struct StoppedPrograms: Sendable {
    private struct Entry: Sendable {
        let program: ExactText
        let since: Duration
        var unasked = 0
    }

    /// Oldest first.
    private var entries: [Entry] = []

    public init() {}

    public func contains(_ program: ExactText) -> Bool { entries.contains { $0.program == program } }

    /// Stops prompts for `program`. Returns the oldest stopped program if it had to be resumed to make room.
    public mutating func stop(_ program: ExactText, now: Duration) -> ExactText? {
        guard !contains(program) else { return nil }
        entries.append(Entry(program: program, since: now))
        return entries.count > Limits.stoppedPrograms ? entries.removeFirst().program : nil
    }

    /// Counts a question of `program` that was suppressed.
    public mutating func recordUnasked(_ program: ExactText) {
        guard let index = entries.firstIndex(where: { $0.program == program }) else { return }
        entries[index].unasked += 1
    }

    /// Resumes prompts for `program`, or for all programs if it is `nil`. Returns the programs that were stopped.
    public mutating func resume(_ program: ExactText?) -> [ExactText] {
        let resumed = entries.filter { program == nil || $0.program == program }
        entries.removeAll { program == nil || $0.program == program }
        return resumed.map(\.program)
    }

    public func listing(now: Duration) -> [StoppedProgram] {
        entries.map { StoppedProgram(subject: $0.program, since: now - $0.since, unasked: $0.unasked) }
    }
}

/// The decisions that people have made at agents about prompts, by program.
public struct PromptRules: Sendable {
    /// For logins, certificates and trust.
    public var challenges = PromptLimiter()
    /// For consent (`auth/confirm`). Counted separately, so that the program may ask for the login at once after
    /// consent was denied.
    public var consents = PromptLimiter()
    /// For logins that a person has supplied in vain, because the server does not say whether they are right.
    public var vain = PromptLimiter()
    public var cancels = RecentCancels()
    public var stopped = StoppedPrograms()

    public init() {}

    /// Resumes prompts for `program`, or for all stopped programs if it is `nil`. Drops the delays and cancels of the
    /// resumed programs only. Returns the programs that were stopped.
    public mutating func resume(_ program: ExactText?) -> [ExactText] {
        let resumed = stopped.resume(program)
        for program in resumed {
            challenges.forget(program)
            consents.forget(program)
            vain.forget(program)
            cancels.resume(program)
        }
        return resumed
    }
}

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
