internal import WatchwordProtocol

/// The queue leases that one fetch holds.
struct HeldLeases: Sendable {
    private let fetch: SharedFetchRequest
    private var keys: [LeaseSlot: AuthenticationQueues.Key] = [:]

    init(_ fetch: SharedFetchRequest) { self.fetch = fetch }

    /// `mutating`, so that the leases of a fetch in a table are read in place: copying the fetch costs more than most events.
    var all: [AuthenticationQueues.Key] { mutating get { keys.isEmpty ? [] : Array(keys.values) } }

    subscript(slot: LeaseSlot) -> AuthenticationQueues.Key? { keys[slot] }

    /// Records a lease that was passed to the fetch while it waited.
    mutating func record(_ key: AuthenticationQueues.Key) { keys[LeaseSlot(key.space)] = key }

    /// Acquires a lease. Returns `false` if the fetch has to wait for it. A fetch with `interaction: "none"` does not
    /// wait while a person is asked, but continues without the lease (SEMANTICS rule 20).
    mutating func take(_ key: AuthenticationQueues.Key, _ context: inout FetchContext) -> Bool {
        let slot = LeaseSlot(key.space)
        if keys[slot] != key { release(.passed(declined: []), slot, &context) }
        let waitsForPeople = fetch.interaction != .none
        switch context.queues.take(key, for: fetch.id, of: fetch.client, waitsForPeople: waitsForPeople) {
        case .taken: keys[slot] = key
        case .queued: return false
        case .questionOpen: break
        }
        return true
    }

    mutating func release(_ outcome: AuthenticationQueues.Outcome, _ slot: LeaseSlot, _ context: inout FetchContext) {
        guard let key = keys.removeValue(forKey: slot) else { return }
        context.queues.release(key, by: fetch.id, outcome)
    }

    /// Releases a lease after an answer. An answer of the fetch's own handler applies to this fetch alone.
    mutating func release(
        _ outcome: AuthenticationQueues.Outcome, answeredBy respondent: Respondent, _ slot: LeaseSlot,
        _ context: inout FetchContext
    ) {
        // guard: handler-speaks-for-one-fetch
        release(respondent == .handler ? .passed(declined: []) : outcome, slot, &context)
    }

    /// Releases the leases of later slots before a wait, so that no two fetches wait for each other (see `LeaseSlot`).
    mutating func release(after slot: LeaseSlot, _ context: inout FetchContext) {
        for later in LeaseSlot.allCases where later > slot { release(.passed(declined: []), later, &context) }
    }

    mutating func releaseAll(_ context: inout FetchContext) {
        if keys.isEmpty { return }
        for slot in LeaseSlot.allCases { release(.passed(declined: []), slot, &context) }
    }
}

/// The kinds of leases that a fetch can hold, in the order in which it may acquire them. While it holds the lease for a
/// server, it may wait for the one for the proxy, but not the reverse; otherwise two fetches could wait for each other.
enum LeaseSlot: Int, Sendable, CaseIterable, Comparable {
    case server, connection, proxy

    static func < (left: LeaseSlot, right: LeaseSlot) -> Bool { left.rawValue < right.rawValue }

    init(_ space: ProtectionSpace) {
        self =
            switch (space.authenticationMethod, space.proxyType) {
            case (.serverTrust, _), (.clientCertificate, _): .connection
            case (_, nil): .server
            default: .proxy
            }
    }
}
