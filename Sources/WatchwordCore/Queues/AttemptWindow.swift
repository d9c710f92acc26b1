internal import WatchwordProtocol

/// Decides how many requests with one credential may be out without a verdict (SEMANTICS rule 22). After a password was
/// changed at the server, only those cause a failed login.
///
/// Works like the congestion window of TCP: a burst begins with a few requests, each acceptance that arrives while
/// others wait doubles the window, and a pause closes it.
///
/// Performs no I/O. All times are monotonic, and never decrease.
struct AttemptWindow: Sendable {
    private struct Request: Sendable {
        let fetch: FetchID
        let sentAt: Duration
        /// Whether the password may have changed before the request was sent, because no later one was accepted. A
        /// request on a connection that has logged in earlier is not at risk either.
        var isAtRisk: Bool
        /// Whether it was sent after a refusal that may concern only the nonce.
        let isSecondTry: Bool
        /// When it ended without a verdict, although the server may have checked the credential; `nil` while it is open.
        var endedAt: Duration?
        /// Whether the server refused a nonce of an earlier fetch, and perhaps not the password.
        var isUnclear = false
    }

    /// The connections to one server that have logged in and serve no request.
    private struct KeptConnections: Sendable {
        var count = 0
        var since = Duration.zero
    }

    /// The requests with the same credential in other windows that share the bounds of this one.
    struct Others: Sendable {
        var atRisk = 0
        var lastSentAt = Duration.zero

        static let none = Others()
    }

    /// In the order in which they were sent.
    private var requests: [Request] = []
    /// When the newest request was sent that the server has accepted; `nil` if this session has seen none.
    private(set) var provenAt: Duration?
    /// How many requests may be at risk, as long as acceptances arrive.
    private var limit = 0
    private var acceptedAt: Duration?
    private var acceptancePause = Duration.zero
    private(set) var lastSentAt = Duration.zero
    /// For logins of connections: the connections to each server that a request can use without a new login.
    private var kept: [Origin: KeptConnections] = [:]

    var atRisk: Int { requests.count { $0.isAtRisk } }
    /// Whether the window contains nothing that later requests depend on.
    var isIdle: Bool { requests.isEmpty && kept.isEmpty }

    var hasOpen: Bool { requests.contains { $0.endedAt == nil } }

    func hasSent(_ fetch: FetchID) -> Bool { requests.contains { $0.fetch == fetch && $0.endedAt == nil } }

    // MARK: Sending

    /// Records an acceptance that was seen outside of this window.
    mutating func note(provenAt time: Duration?) { provenAt = [provenAt, time].compactMap(\.self).max() }

    /// Whether one more request may be sent.
    /// - Parameters:
    ///   - origin: the server, if the login is one of the connection; `nil` for other logins.
    func permits(others: Others, on origin: Origin?, now: Duration) -> Bool {
        if hasKeptConnection(to: origin, now: now) { return true }
        let atRisk = atRisk + others.atRisk
        let isOverdue = atRisk < bound && now >= endOfPatience(others)
        if hasUnclear { return isOverdue || !requests.contains(where: \.isSecondTry) }  // guard: digest-one-second-try
        return isOverdue || atRisk < capacity(now)
    }

    /// Returns when one more request may be sent if no verdict arrives until then; `nil` if the bound is reached.
    func nextTry(others: Others) -> Duration? {
        if atRisk + others.atRisk < bound { return endOfPatience(others) }
        return requests.compactMap { $0.endedAt.map { $0 + Limits.lostVerdictMemory } }.min()
    }

    mutating func send(_ fetch: FetchID, on origin: Origin?, now: Duration) {
        let isKept = hasKeptConnection(to: origin, now: now)
        if let origin, isKept { kept[origin]?.count -= 1 }
        requests.append(Request(fetch: fetch, sentAt: now, isAtRisk: !isKept, isSecondTry: hasUnclear))
        if !isKept { lastSentAt = now }
    }

    /// The number of requests without a verdict that is never exceeded while no acceptance arrives. One more for Digest:
    /// the refusal of a remembered nonce is followed by one try with the new one.
    private var bound: Int { Limits.unprovenAttempts + (hasUnclear ? 1 : 0) }

    private func endOfPatience(_ others: Others) -> Duration {
        max(lastSentAt, others.lastSentAt)  // guard: attempt-one-after-the-other
            + (provenAt == nil ? Limits.verdictWait : Limits.knownVerdictWait)  // guard: attempt-patience
    }

    /// A credential that nobody has used recently is sent by one fetch first.
    private func start(_ now: Duration) -> Int {
        // guard: attempt-aged
        provenAt.map { now - $0 < Limits.acceptanceAge } ?? false ? Limits.unprovenAttempts : 1
    }

    private func capacity(_ now: Duration) -> Int {
        let isFlowing = acceptedAt.map { now - $0 <= acceptancePause } ?? false  // guard: attempt-window-lapses
        return max(start(now), isFlowing ? limit : 0)
    }

    private var hasUnclear: Bool { requests.contains(where: \.isUnclear) }

    private func hasKeptConnection(to origin: Origin?, now: Duration) -> Bool {
        guard let origin, let connections = kept[origin], connections.count > 0 else { return false }
        return now - connections.since < Limits.acceptanceAge && mayUseKeptConnections(now)
    }

    private func mayUseKeptConnections(_ now: Duration) -> Bool {
        provenAt.map { now - $0 < Limits.connectionAge } ?? false
    }

    // MARK: Verdicts

    /// Records an acceptance.
    /// - Parameters:
    ///   - waiting: the number of fetches that wait to send the credential.
    ///   - since: when the first of them began to wait. An acceptance of an earlier request permits no more: with this
    ///     one, the program may just have polled before the password was changed.
    ///   - most: the number of requests that can be under way at the same time on the connections to this server.
    mutating func accept(_ fetch: FetchID, waiting: Int, since: Duration, most: Int, now: Duration) {
        guard let index = index(of: fetch) else { return }
        let sentAt = requests[index].sentAt
        // Requests that were sent earlier were sent before any later change of the password.
        for earlier in requests.indices[...index] {
            requests[earlier].isAtRisk = false
            requests[earlier].isUnclear = false
        }
        requests.removeAll { $0.fetch == fetch || !$0.isAtRisk && $0.endedAt != nil }
        if !mayUseKeptConnections(now) { kept = [:] }
        note(provenAt: sentAt)
        let current = capacity(now)
        let grows = waiting > 0 && sentAt >= since  // guard: attempt-window-grows-by-its-own-requests
        // guard: attempt-window-shrinks
        limit = min(grows ? 2 * current : current, 2 * (requests.count + waiting), most)
        acceptedAt = now
        acceptancePause = max(Limits.shortestAcceptancePause, (now - sentAt) * 2)
    }

    /// Ends a request without a verdict, which the server did not check.
    /// - Parameter origin: the server, if the request used a connection that had logged in before.
    mutating func end(_ fetch: FetchID, onKeptConnectionTo origin: Origin?, now: Duration) {
        guard let index = index(of: fetch) else { return }
        requests.remove(at: index)
        if requests.isEmpty { limit = 0 }
        guard let origin else { return }
        if let known = kept[origin], now - known.since >= Limits.acceptanceAge { kept[origin] = nil }
        // guard: attempt-kept-connections
        if kept[origin] != nil || kept.count < Limits.keptConnectionServers {
            kept[origin, default: KeptConnections()].count += 1
            kept[origin]?.since = now
        }
    }

    /// Ends a request that the server may yet check, because its response did not arrive.
    mutating func lose(_ fetch: FetchID, now: Duration) {
        if let index = index(of: fetch) { requests[index].endedAt = now }
    }

    /// Records the refusal of a nonce of an earlier fetch.
    mutating func doubt(_ fetch: FetchID, now: Duration) {
        guard let index = index(of: fetch) else { return }
        // The acceptance of a later request has shown that the password is right.
        guard requests[index].isAtRisk else {
            _ = requests.remove(at: index)
            return
        }
        (requests[index].endedAt, requests[index].isUnclear) = (now, true)
    }

    /// Forgets requests and connections that ended long ago.
    mutating func expire(now: Duration) {
        requests.removeAll { $0.endedAt.map { now - $0 >= Limits.lostVerdictMemory } ?? false }
        if requests.isEmpty { limit = 0 }
        kept = kept.filter { now - $0.value.since < Limits.acceptanceAge }
    }

    private func index(of fetch: FetchID) -> Int? {
        requests.firstIndex { $0.fetch == fetch && $0.endedAt == nil }
    }
}
