public import WatchwordProtocol

/// Suppresses repeated audit events. A repeated question, answer, denial, or use of a login is recorded once a minute
/// for each client, so that a program cannot push all other records out of the log by repeating one.
///
/// All times are monotonic.
public struct AuditEventFilter: Sendable {
    private struct Use: Hashable {
        let kind: AuditEvent.Kind
        let client: AuditEvent.Client?
        let origin: Origin
        let space: SpacePattern
        let user: ExactText?
        let source: CredentialSource

        /// Hashes only a few members, since this runs for every fetch. Comparing equal values is fast because they
        /// usually share the storage of their strings.
        func hash(into hasher: inout Hasher) {
            hasher.combine(client?.pid)
            hasher.combine(origin.port)
            hasher.combine(source)
            hasher.combine(space.realm)
        }
    }

    /// The questions, the answers or the denials of one client.
    private struct Talk: Hashable {
        let kind: AuditEvent.Kind
        let client: AuditEvent.Client?

        func hash(into hasher: inout Hasher) { hasher.combine(client?.pid) }
    }

    /// The subject of a question, an answer or a denial. A client can cause any number of distinct ones.
    private struct Detail: Hashable {
        let origin: String?
        let space: SpacePattern?
        let reason: String?
        let by: String?
        let action: String?
        let program: String?
        let agent: Int?
        let failures: Int

        init(_ event: AuditEvent, after failures: Int) {
            (origin, space, reason, by) = (event.origin, event.space, event.reason, event.by)
            (action, program, agent) = (event.action, event.program, event.agent?.pid)
            self.failures = failures
        }

        /// Hashes only a few members, as `Use` does.
        func hash(into hasher: inout Hasher) {
            hasher.combine(origin)
            hasher.combine(space?.realm)
        }
    }

    private struct Told {
        var since: Duration
        var suppressedCount = 0
    }

    private static let window = Duration.seconds(60)
    /// The maximum numbers of uses, of `Talk` values, and of details of one of them.
    private static let (mostUses, mostTalks, mostDetails) = (256, 128, 64)
    /// The maximum number of distinct questions, answers or denials that are tracked for one client. Further ones are
    /// counted as a single event.
    static let maxDistinctPerClient = 32

    private var uses: [Use: Told] = [:]
    /// `nil` is the detail of all events beyond `maxDistinctPerClient`.
    private var talks: [Talk: [Detail?: Told]] = [:]

    public init() {}

    /// Returns the number of uses that the record stands for: this one, and those suppressed since the previous record.
    /// Returns `nil` if the record is to be suppressed.
    public mutating func count(_ record: AuditRecord, by client: AuditEvent.Client?, now: Duration) -> Int? {
        let kind: AuditEvent.Kind
        switch record.kind {
        case .credentialUsed, .credentialRefused: kind = .credentialUsed
        case .certificateUsed, .certificateRefused: kind = .certificateUsed
        default: return 1
        }
        let use = Use(
            kind: kind, client: client, origin: record.origin, space: record.space, user: record.user,
            source: record.source)
        guard record.kind == kind else {
            // The next use is a new attempt, and is recorded.
            uses[use] = nil
            return 1
        }
        return Self.count(use, in: &uses, Self.mostUses, now)
    }

    /// Returns the number of events that a question, an answer or a denial stands for, or `nil` if it is to be
    /// suppressed. Events of any other kind are never suppressed.
    /// - Parameter failures: the number of failed attempts before the event. A question after a refusal is a different
    ///   event.
    public mutating func count(_ event: AuditEvent, after failures: Int = 0, now: Duration) -> Int? {
        switch event.kind {
        case .challengeAsked, .challengeAnswered, .challengeUnanswered, .promptAsked, .promptAnswered, .denied: break
        default: return 1
        }
        let talk = Talk(kind: event.kind, client: event.client)
        if talks.index(forKey: talk) == nil, talks.count >= Self.mostTalks {
            talks = talks.filter { $0.value.values.contains { now - $0.since < Self.window } }
            if talks.count >= Self.mostTalks { talks = [:] }
        }
        return Self.count(Detail(event, after: failures), of: &talks[talk, default: [:]], now)
    }

    private static func count(_ detail: Detail, of told: inout [Detail?: Told], _ now: Duration) -> Int? {
        // An event whose entry has expired counts as a distinct event of the current window again.
        let isDistinct = told[detail].map { now - $0.since >= window } ?? true
        let isBeyond = isDistinct && told.values.count { now - $0.since < window } >= maxDistinctPerClient
        // guard: denials-of-one-client
        return count(isBeyond ? nil : detail, in: &told, mostDetails, now)
    }

    private static func count<Key: Hashable>(
        _ key: Key, in table: inout [Key: Told], _ capacity: Int, _ now: Duration
    ) -> Int? {
        var suppressedCount = 0
        if let index = table.index(forKey: key) {
            if now - table.values[index].since < window {
                table.values[index].suppressedCount += 1
                return nil
            }
            suppressedCount = table.values[index].suppressedCount
        }
        if table.count >= capacity { table = table.filter { now - $0.value.since < window } }
        // Duplicate records are better than unbounded memory.
        if table.count >= capacity { table = [:] }
        table[key] = Told(since: now)
        return 1 + suppressedCount
    }
}
