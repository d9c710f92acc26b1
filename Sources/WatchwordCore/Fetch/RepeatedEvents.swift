public import WatchwordProtocol

/// Which events are not worth a line of their own: the same use of a log-in, question, answer or denial, of the same client,
/// within a minute. A program that does it a thousand times a second would push everything else out of the account.
///
/// Times are durations since any one start; they never go back.
public struct RepeatedEvents: Sendable {
    private struct Use: Hashable {
        let kind: AuditEvent.Kind
        let client: AuditEvent.Client?
        let origin: Origin
        let space: SpacePattern
        let user: ExactText?
        let source: CredentialSource

        /// Of little, for every fetch comes here; what is equal shares its texts, and is compared at once.
        func hash(into hasher: inout Hasher) {
            hasher.combine(client?.pid)
            hasher.combine(origin.port)
            hasher.combine(source)
        }
    }

    /// What a client has brought about without using anything: of that it can think of as many as it likes.
    private struct Talk: Hashable {
        let kind: AuditEvent.Kind
        let client: AuditEvent.Client?
        let detail: Detail?
    }

    private struct Detail: Hashable {
        let origin: String?
        let space: SpacePattern?
        let words: [String?]
        let failures: Int
    }

    private struct Told {
        var since: Duration
        var passedOver = 0
    }

    private static let window = Duration.seconds(60)
    private static let capacity = 256
    /// Different ones of one kind and client within the minute; further ones count as one.
    static let differentOfOneClient = 32

    private var uses: [Use: Told] = [:]
    private var talk: [Talk: Told] = [:]

    public init() {}

    /// For how many uses the event is to stand: this one, and those that were passed over since the last. `nil` when it is to be
    /// passed over.
    public mutating func count(_ note: AuditNote, by client: AuditEvent.Client?, now: Duration) -> Int? {
        let kind: AuditEvent.Kind
        switch note.kind {
        case .credentialUsed, .credentialRefused: kind = .credentialUsed
        case .certificateUsed, .certificateRefused: kind = .certificateUsed
        default: return 1
        }
        let use = Use(
            kind: kind, client: client, origin: note.origin, space: note.space, user: note.user,
            source: note.source)
        guard note.kind == kind else {
            // The next one is another try.
            uses[use] = nil
            return 1
        }
        return Self.count(use, in: &uses, now)
    }

    /// The same for a question, an answer or a denial; other events are told each time.
    /// - Parameter failures: after which it comes up: the question after a refusal is another one.
    public mutating func count(_ event: AuditEvent, after failures: Int = 0, now: Duration) -> Int? {
        guard [.challengeAsked, .challengeAnswered, .challengeUnanswered, .denied].contains(event.kind) else {
            return 1
        }
        let detail = Detail(
            origin: event.origin, space: event.space,
            words: [event.reason, event.by, event.action, event.agent.map { "\($0.pid)" }], failures: failures)
        var one = Talk(kind: event.kind, client: event.client, detail: detail)
        if talk[one] == nil {
            let others = talk.count { $0.key.kind == one.kind && $0.key.client == one.client }
            if others >= Self.differentOfOneClient {
                one = Talk(kind: event.kind, client: event.client, detail: nil)
            }
        }
        return Self.count(one, in: &talk, now)
    }

    private static func count<Key: Hashable>(_ key: Key, in table: inout [Key: Told], _ now: Duration) -> Int? {
        var passedOver = 0
        if let index = table.index(forKey: key) {
            if now - table.values[index].since < window {
                table.values[index].passedOver += 1
                return nil
            }
            passedOver = table.values[index].passedOver
        }
        if table.count >= capacity { table = table.filter { now - $0.value.since < window } }
        // Rather told twice than kept without end.
        if table.count >= capacity { table = [:] }
        table[key] = Told(since: now)
        return 1 + passedOver
    }
}
