public import WatchwordProtocol

/// Delays the questions of a program after a person has cancelled some (SECURITY-RULES X5). The delay grows with each
/// cancel and applies per program and site; after several cancels it applies to all sites of the program.
///
/// All times are durations since one arbitrary start and never decrease.
public struct PromptLimiter: Sendable {
    /// The server or proxy of a login, regardless of realm, path and authentication scheme; the program that prompts
    /// through a client such as askpass; or the keyring.
    public struct Site: Sendable, Hashable {
        let scheme: String
        let host: ExactText
        let port: Int
        let isProxy: Bool

        public init(_ space: ProtectionSpace) {
            (scheme, host, port) = (space.scheme, space.host.asciiLowercased, space.port)
            isProxy = space.proxyType != nil
        }

        /// No protection space has this scheme.
        public init(_ prompt: ProgramPrompt) {
            (scheme, host, port, isProxy) = ("", ExactText(prompt.program ?? ""), 0, false)
        }

        private init(scheme: String) { (self.scheme, host, port, isProxy) = (scheme, "", 0, false) }

        /// The window of the keyring, which names no program.
        public static let keyring = Site(scheme: "keyring")
    }

    struct Key: Hashable {
        let program: ExactText
        /// `nil` for all sites of the program together.
        let site: Site?
    }

    struct Record {
        var refusals = 0
        var end = Duration.zero
    }

    /// The number of refusals in a row, over all sites of a program, up to which its questions about other sites are
    /// not delayed.
    static let freeRefusals = 5

    private(set) var records: [Key: Record] = [:]

    public init() {}

    static func delay(after refusals: Int) -> Duration {
        guard refusals > 0 else { return .zero }
        return min(Limits.promptDelay * (1 << min(refusals - 1, 16)), Limits.longestPromptDelay)
    }

    /// Records that a person cancelled a question of this program, or answered `no`.
    /// - Parameter program: the program in the form of `Subject.text`.
    public mutating func recordRefusal(of program: ExactText, at site: Site, now: Duration) {
        makeRoom(now)
        record(Key(program: program, site: site), free: 0, now)
        // guard: all-sites-of-a-program-count-together
        record(Key(program: program, site: nil), free: Self.freeRefusals, now)
    }

    /// Records that a person supplied a credential or consented. Resets the counts of refusals for this site and for
    /// all sites of the program together.
    public mutating func recordAnswer(to program: ExactText, at site: Site) {
        records[Key(program: program, site: site)] = nil
        records[Key(program: program, site: nil)] = nil
    }

    /// Returns how long this program has to wait before it may ask about this site; `nil` if it may ask now.
    // guard: cancelled-questions-have-to-wait
    public func wait(of program: ExactText, at site: Site, now: Duration) -> Duration? {
        let ends = [site, nil].compactMap { records[Key(program: program, site: $0)]?.end }
        guard let end = ends.max(), end > now else { return nil }
        return end - now
    }

    /// Drops the delays of a program, so its next question is asked at once.
    public mutating func forget(_ program: ExactText) { records = records.filter { $0.key.program != program } }

    private mutating func record(_ key: Key, free: Int, _ now: Duration) {
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
