public import WatchwordProtocol

/// Suppresses repeated audit events. A repeated question, answer, denial, refused front request, or use of a login is recorded
/// once a minute for each client. That no program can push the records of others out of the log is ensured by the shares of the
/// files (`AuditShares`): a program may have any number of processes.
///
/// All times are monotonic.
public struct AuditEventFilter: Sendable {
    /// Identifies the questions, the answers or the refusals of one client.
    private struct Talk: Hashable {
        let kind: AuditEvent.Kind
        let client: AuditEvent.Client?

        func hash(into hasher: inout Hasher) { hasher.combine(client?.pid) }
    }

    /// The questions, the answers or the refusals of one client. Only hash values are stored, because servers choose the
    /// text, and a program can cause any number of events.
    private struct Events {
        private var distinct: [Int: Told] = [:]
        /// All events beyond `maxDistinctPerClient`.
        private var others: Told?

        func isCurrent(_ now: Duration) -> Bool {
            others?.isCurrent(now) ?? false || distinct.values.contains { $0.isCurrent(now) }
        }

        mutating func count(_ event: AuditEvent, after failures: Int, _ now: Duration) -> Int? {
            let detail = Self.hash(event, failures)
            // An event whose entry has expired counts as a distinct event of the current window again.
            let isDistinct = !(distinct[detail]?.isCurrent(now) ?? false)
            if isDistinct, distinct.values.count(where: { $0.isCurrent(now) }) >= maxDistinctPerClient {
                return others.count(now)
            }
            if distinct[detail] == nil, distinct.count >= 2 * maxDistinctPerClient { dropExpired(now) }
            return distinct[detail].count(now)
        }

        /// The suppressed events are counted in `others` from now on.
        private mutating func dropExpired(_ now: Duration) {
            let expired = distinct.filter { !$0.value.isCurrent(now) }
            let suppressedCount = expired.values.reduce(0) { $0 + $1.suppressedCount }
            for key in expired.keys { distinct[key] = nil }
            if suppressedCount > 0 { others = (others ?? Told(since: now - window)).adding(suppressedCount) }
        }

        private static func hash(_ event: AuditEvent, _ failures: Int) -> Int {
            var hasher = Hasher()
            for text in [event.origin, event.reason, event.by, event.action, event.program] { hasher.combine(text) }
            hasher.combine(event.space)
            hasher.combine(event.agent?.pid)
            hasher.combine(failures)
            return hasher.finalize()
        }
    }

    fileprivate struct Told {
        let since: Duration
        var suppressedCount = 0

        func isCurrent(_ now: Duration) -> Bool { now - since < window }

        func adding(_ count: Int) -> Told { Told(since: since, suppressedCount: suppressedCount + count) }
    }

    private static let window = Duration.seconds(60)
    private static let (mostUses, mostTalks) = (256, 128)
    /// The maximum number of distinct questions, answers or refusals that are tracked for one client. Further ones are
    /// counted as a single event.
    static let maxDistinctPerClient = 32

    /// The uses of logins and certificates, by `hash(of:by:)`.
    private var uses: [Int: Told] = [:]
    private var talks: [Talk: Events] = [:]

    public init() {}

    /// Returns the number of uses that the record stands for: this one, and those suppressed since the previous record.
    /// Returns `nil` if the record is to be suppressed.
    public mutating func count(_ record: AuditRecord, by client: AuditEvent.Client?, now: Duration) -> Int? {
        let use: Int
        switch record.kind {
        case .credentialUsed, .certificateUsed: use = Self.hash(of: record, by: client, as: record.kind)
        // The next use is a new attempt, and is recorded.
        case .credentialRefused:
            uses[Self.hash(of: record, by: client, as: .credentialUsed)] = nil
            return 1
        case .certificateRefused:
            uses[Self.hash(of: record, by: client, as: .certificateUsed)] = nil
            return 1
        default: return 1
        }
        if uses.count >= Self.mostUses { uses = uses.filter { $0.value.isCurrent(now) } }
        // Duplicate records are better than unbounded memory.
        if uses.count >= Self.mostUses { uses = [:] }
        return uses[use].count(now)
    }

    private static func hash(of record: AuditRecord, by client: AuditEvent.Client?, as kind: AuditEvent.Kind) -> Int {
        var hasher = Hasher()
        hasher.combine(kind)
        hasher.combine(client)
        // The hash of an origin is without the scheme.
        hasher.combine(record.origin.scheme)
        hasher.combine(record.origin)
        hasher.combine(record.space)
        hasher.combine(record.user)
        hasher.combine(record.source)
        return hasher.finalize()
    }

    /// Returns the number of events that a question, an answer or a refusal stands for, or `nil` if it is to be
    /// suppressed. Events of any other kind are never suppressed.
    /// - Parameter failures: the number of failed attempts before the event. A question after a refusal is a different
    ///   event.
    public mutating func count(_ event: AuditEvent, after failures: Int = 0, now: Duration) -> Int? {
        switch event.kind {
        case .challengeAsked, .challengeAnswered, .challengeUnanswered, .promptAsked, .promptAnswered, .denied: break
        // A restricted front promises a record of each request that it accepts.
        case .frontRequest where event.reason != nil: break
        default: return 1
        }
        let talk = Talk(kind: event.kind, client: event.client)
        if talks.index(forKey: talk) == nil, talks.count >= Self.mostTalks {
            talks = talks.filter { $0.value.isCurrent(now) }
            if talks.count >= Self.mostTalks { talks = [:] }
        }
        return talks[talk, default: Events()].count(event, after: failures, now)
    }
}

extension AuditEventFilter.Told? {
    /// Counts an event. Returns the number of events that its record stands for, or `nil` if it is to be suppressed.
    fileprivate mutating func count(_ now: Duration) -> Int? {
        guard let told = self, told.isCurrent(now) else {
            defer { self = AuditEventFilter.Told(since: now) }
            return 1 + (self?.suppressedCount ?? 0)
        }
        self = told.adding(1)
        return nil
    }
}
