public import WatchwordProtocol

/// The programs for which a person wants to be asked nothing any more: kept until that is taken back, or the broker ends.
///
/// Programs are named as `Subject.text` has it. Times are durations since any one start; they never go back.
public struct StoppedPrograms: Sendable {
    private struct Entry: Sendable {
        let program: ExactText
        let since: Duration
        var unasked = 0
    }

    /// The oldest first.
    private var entries: [Entry] = []

    public init() {}

    public func contains(_ program: ExactText) -> Bool { entries.contains { $0.program == program } }

    /// Returns the program that is asked about again because there is no room for both; `nil` where there is.
    public mutating func stop(_ program: ExactText, now: Duration) -> ExactText? {
        guard !contains(program) else { return nil }
        entries.append(Entry(program: program, since: now))
        return entries.count > Limits.stoppedPrograms ? entries.removeFirst().program : nil
    }

    /// A question of this program was not put.
    public mutating func noteUnasked(_ program: ExactText) {
        guard let index = entries.firstIndex(where: { $0.program == program }) else { return }
        entries[index].unasked += 1
    }

    /// Takes it back for one program, or for all where it is `nil`. Returns those for which it was said.
    public mutating func resume(_ program: ExactText?) -> [ExactText] {
        let resumed = entries.filter { program == nil || $0.program == program }
        entries.removeAll { program == nil || $0.program == program }
        return resumed.map(\.program)
    }

    public func listing(now: Duration) -> [StoppedProgram] {
        entries.map { StoppedProgram(subject: $0.program, since: now - $0.since, unasked: $0.unasked) }
    }
}

/// What people have said at agents about being asked, by program.
public struct PromptRules: Sendable {
    /// About logins, certificates and trust.
    public var challenges = PromptLimiter()
    /// The same for `auth/confirm`: after a no the login may be asked for at once.
    public var consents = PromptLimiter()
    public var cancels = RecentCancels()
    public var stopped = StoppedPrograms()

    public init() {}

    /// Takes back that a program, or all where it is `nil`, is asked nothing any more, with the delays and cancels that led to
    /// that. For other programs these stay. Returns those for which it was said.
    public mutating func resume(_ program: ExactText?) -> [ExactText] {
        let resumed = stopped.resume(program)
        for program in resumed {
            challenges.forget(program)
            consents.forget(program)
            cancels.resume(program)
        }
        return resumed
    }
}
