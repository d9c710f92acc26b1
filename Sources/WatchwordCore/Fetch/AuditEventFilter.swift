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
        }
    }

    /// A question, an answer or a denial. A client can cause any number of distinct ones.
    private struct Talk: Hashable {
        let kind: AuditEvent.Kind
        let client: AuditEvent.Client?
        let detail: Detail?

        /// Hashes only a few members, as `Use` does.
        func hash(into hasher: inout Hasher) {
            hasher.combine(client?.pid)
            hasher.combine(detail?.origin)
        }
    }

    private struct Detail: Hashable {
        let origin: String?
        let space: SpacePattern?
        let words: [String?]
        let failures: Int
    }

    private struct Told {
        var since: Duration
        var suppressedCount = 0
    }

    private static let talkKinds: Set<AuditEvent.Kind> = [
        .challengeAsked, .challengeAnswered, .challengeUnanswered, .promptAsked, .promptAnswered, .denied,
    ]
    private static let window = Duration.seconds(60)
    private static let capacity = 256
    /// The maximum number of distinct questions, answers or denials that are tracked for one client. Further ones are
    /// counted as a single event.
    static let maxDistinctPerClient = 32

    private var uses: [Use: Told] = [:]
    private var talk: [Talk: Told] = [:]

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
        return Self.count(use, in: &uses, now)
    }

    /// Returns the number of events that a question, an answer or a denial stands for, or `nil` if it is to be
    /// suppressed. Events of any other kind are never suppressed.
    /// - Parameter failures: the number of failed attempts before the event. A question after a refusal is a different
    ///   event.
    public mutating func count(_ event: AuditEvent, after failures: Int = 0, now: Duration) -> Int? {
        guard Self.talkKinds.contains(event.kind) else { return 1 }
        let detail = Detail(
            origin: event.origin, space: event.space,
            words: [event.reason, event.by, event.action, event.program, event.agent.map { "\($0.pid)" }],
            failures: failures)
        var one = Talk(kind: event.kind, client: event.client, detail: detail)
        // An event whose entry has expired counts as a distinct event of the current window again.
        if talk[one].map({ now - $0.since >= Self.window }) ?? true {
            let others = talk.count {
                $0.key.kind == one.kind && $0.key.client == one.client && now - $0.value.since < Self.window
            }
            if others >= Self.maxDistinctPerClient {  // guard: denials-of-one-client
                one = Talk(kind: event.kind, client: event.client, detail: nil)
            }
        }
        return Self.count(one, in: &talk, now)
    }

    private static func count<Key: Hashable>(_ key: Key, in table: inout [Key: Told], _ now: Duration) -> Int? {
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
