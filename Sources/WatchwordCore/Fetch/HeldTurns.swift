internal import WatchwordProtocol

/// The leases of queues that one fetch holds.
struct HeldTurns: Sendable {
    private let intent: FetchIntent
    private var keys: [TurnSlot: SpaceTurns.Key] = [:]

    init(_ intent: FetchIntent) { self.intent = intent }

    var all: [SpaceTurns.Key] { keys.isEmpty ? [] : Array(keys.values) }

    subscript(slot: TurnSlot) -> SpaceTurns.Key? { keys[slot] }

    /// Its turn has come.
    mutating func note(_ key: SpaceTurns.Key) { keys[TurnSlot(key.space)] = key }

    /// `false`, and then the fetch has to wait. A fetch that asks nobody does not wait while a person is asked, and goes on
    /// without the turn (semantics rule 20).
    mutating func take(_ key: SpaceTurns.Key, _ context: inout FetchContext) -> Bool {
        let slot = TurnSlot(key.space)
        if keys[slot] != key { release(.passed(declined: []), slot, &context) }
        let waitsForPeople = intent.plan.interaction != .none
        switch context.turns.take(key, for: intent.id, of: intent.client, waitsForPeople: waitsForPeople) {
        case .taken: keys[slot] = key
        case .queued: return false
        case .questionOpen: break
        }
        return true
    }

    mutating func release(_ outcome: SpaceTurns.Outcome, _ slot: TurnSlot, _ context: inout FetchContext) {
        guard let key = keys.removeValue(forKey: slot) else { return }
        context.turns.release(key, by: intent.id, outcome)
    }

    /// What the handler of a fetch decides holds for that fetch alone.
    mutating func release(
        _ outcome: SpaceTurns.Outcome, answeredBy respondent: Respondent, _ slot: TurnSlot,
        _ context: inout FetchContext
    ) {
        release(respondent == .handler ? .passed(declined: []) : outcome, slot, &context)
    }

    /// Those further on the way, before it waits: so no two fetches wait for each other (see `TurnSlot`).
    mutating func release(after slot: TurnSlot, _ context: inout FetchContext) {
        for later in TurnSlot.allCases where later > slot { release(.passed(declined: []), later, &context) }
    }

    mutating func releaseAll(_ context: inout FetchContext) {
        if keys.isEmpty { return }
        for slot in TurnSlot.allCases { release(.passed(declined: []), slot, &context) }
    }
}

/// Which of its turns a fetch holds: it may wait for that of a proxy while it holds that of the server behind it, and never
/// the other way round, so that no two fetches wait for each other.
enum TurnSlot: Int, Sendable, CaseIterable, Comparable {
    case server, connection, proxy

    static func < (left: TurnSlot, right: TurnSlot) -> Bool { left.rawValue < right.rawValue }

    init(_ space: ProtectionSpace) {
        self =
            switch (space.authenticationMethod, space.proxyType) {
            case (.serverTrust, _), (.clientCertificate, _): .connection
            case (_, nil): .server
            default: .proxy
            }
    }
}
