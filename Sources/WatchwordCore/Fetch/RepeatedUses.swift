public import WatchwordProtocol

/// Which uses of log-ins are not worth an event of their own: the same one, by the same client, for the same server, within a
/// minute. A program that fetches a thousand times a second would push everything else out of the account.
///
/// Times are durations since any one start; they never go back.
public struct RepeatedUses: Sendable {
    private struct Use: Hashable {
        let kind: AuditEvent.Kind
        let client: AuditEvent.Client?
        let origin: Origin
        let space: SpacePattern
        let user: String?
        let source: CredentialSource

        /// Of little, for every fetch comes here; what is equal shares its texts, and is compared at once.
        func hash(into hasher: inout Hasher) {
            hasher.combine(client?.pid)
            hasher.combine(origin.port)
            hasher.combine(source)
        }
    }

    private static let window = Duration.seconds(60)
    private static let capacity = 256

    private var told: [Use: (since: Duration, passedOver: Int)] = [:]

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
            told[use] = nil
            return 1
        }
        var passedOver = 0
        if let index = told.index(forKey: use) {
            if now - told.values[index].since < Self.window {
                told.values[index].passedOver += 1
                return nil
            }
            passedOver = told.values[index].passedOver
        }
        if told.count >= Self.capacity { told = told.filter { now - $0.value.since < Self.window } }
        // Rather told twice than kept without end.
        if told.count >= Self.capacity { told = [:] }
        told[use] = (now, 0)
        return 1 + passedOver
    }
}
