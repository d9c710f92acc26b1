public import WatchwordProtocol

/// When a program may put a question to a person again whose last ones were cancelled (security rule X5): later after each
/// cancel, for each program and site, and for a program with many sites at all of them.
///
/// Times are durations since any one start; they never go back.
public struct PromptLimiter: Sendable {
    /// Where a login is for, whatever its realm, path and scheme.
    public struct Site: Sendable, Hashable {
        let scheme: String
        let host: ExactText
        let port: Int
        let isProxy: Bool

        public init(_ space: ProtectionSpace) {
            (scheme, host, port) = (space.scheme, space.host.asciiLowercased, space.port)
            isProxy = space.proxyType != nil
        }
    }

    private struct Key: Hashable {
        let program: ExactText
        /// `nil` for all sites of the program together.
        let site: Site?
    }

    private struct Record {
        var refusals = 0
        var end = Duration.zero
    }

    /// The sites at which a program may be refused before it has to wait at all of them.
    static let freeRefusals = 5

    private var records: [Key: Record] = [:]

    public init() {}

    var count: Int { records.count }

    /// How long after that many refusals in a row nothing is asked.
    static func delay(after refusals: Int) -> Duration {
        guard refusals > 0 else { return .zero }
        return min(Limits.promptDelay * (1 << min(refusals - 1, 16)), Limits.longestPromptDelay)
    }

    /// A person has cancelled a question of this program, or has said no to it.
    /// - Parameter program: as `Subject.text` has it.
    public mutating func noteRefusal(of program: ExactText, at site: Site, now: Duration) {
        makeRoom(now)
        note(Key(program: program, site: site), free: 0, now)
        note(Key(program: program, site: nil), free: Self.freeRefusals, now)
    }

    /// A person has answered: the next refusal is the first one again.
    public mutating func noteAnswer(to program: ExactText, at site: Site) {
        records[Key(program: program, site: site)] = nil
        records[Key(program: program, site: nil)] = nil
    }

    /// How long this program has to wait before it may ask about this site; `nil` when it may ask now.
    public func wait(of program: ExactText, at site: Site, now: Duration) -> Duration? {
        let ends = [site, nil].compactMap { records[Key(program: program, site: $0)]?.end }
        guard let end = ends.max(), end > now else { return nil }
        return end - now
    }

    /// Its next question is put at once.
    public mutating func forget(_ program: ExactText) { records = records.filter { $0.key.program != program } }

    private mutating func note(_ key: Key, free: Int, _ now: Duration) {
        var record = records[key] ?? Record()
        record.refusals += 1
        record.end = now + Self.delay(after: record.refusals - free)
        records[key] = record
    }

    private mutating func makeRoom(_ now: Duration) {
        records = records.filter { now - $0.value.end < Limits.promptMemory }
        while records.count > Limits.promptRecords - 2, let oldest = records.min(by: { $0.value.end < $1.value.end }) {
            records[oldest.key] = nil
        }
    }
}
