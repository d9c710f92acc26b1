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
        /// Whether the password may have changed before the request was sent, because no later one was accepted.
        var isAtRisk = true
        /// Whether it was sent after a refusal that may concern only the nonce.
        let isSecondTry: Bool
        /// When it ended without a verdict, although the server may have checked the credential; `nil` while it is open.
        var endedAt: Duration?
        /// Whether the server refused a nonce of an earlier fetch, and perhaps not the password.
        var isUnclear = false

        var isLost: Bool { endedAt != nil && !isUnclear }
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

    var atRisk: Int { requests.count { $0.isAtRisk } }
    /// Whether the window contains nothing that later requests depend on.
    var isIdle: Bool { requests.isEmpty && limit <= Limits.unprovenAttempts }

    var hasOpen: Bool { requests.contains { $0.endedAt == nil } }

    func hasSent(_ fetch: FetchID) -> Bool { requests.contains { $0.fetch == fetch && $0.endedAt == nil } }

    // MARK: Sending

    /// Records an acceptance that was seen outside of this window.
    mutating func note(provenAt time: Duration?) {
        if let time { provenAt = max(provenAt ?? time, time) }
    }

    /// Whether one more request may be sent.
    /// - Parameters:
    ///   - fetch: the fetch that would send it. It does not wait for a request of its own that was lost.
    func permits(_ fetch: FetchID, others: Others, now: Duration) -> Bool {
        let own = requests.count { $0.fetch == fetch && $0.isLost && $0.isAtRisk }
        let atRisk = atRisk - own + others.atRisk
        let isOverdue = atRisk < bound && now >= endOfPatience(others)
        if hasUnclear { return isOverdue || !requests.contains(where: \.isSecondTry) }
        return isOverdue || atRisk < capacity(now)
    }

    /// Returns when one more request may be sent if no verdict arrives until then; `nil` if the bound is reached.
    func nextTry(others: Others) -> Duration? {
        if atRisk + others.atRisk < bound { return endOfPatience(others) }
        return requests.compactMap(endOfMemory).min()
    }

    mutating func send(_ fetch: FetchID, now: Duration) {
        if hasLapsed(now) { limit = 0 }
        requests.append(Request(fetch: fetch, sentAt: now, isSecondTry: hasUnclear))
        lastSentAt = now
    }

    /// The number of requests without a verdict that is never exceeded while no acceptance arrives. One more for Digest:
    /// the refusal of a remembered nonce is followed by one try with the new one.
    private var bound: Int { Limits.unprovenAttempts + (hasUnclear ? 1 : 0) }

    private func endOfPatience(_ others: Others) -> Duration {
        max(lastSentAt, others.lastSentAt)
            + (provenAt == nil ? Limits.verdictWait : Limits.knownVerdictWait)
    }

    /// A credential that nobody has used recently is sent by one fetch first.
    private func start(_ now: Duration) -> Int {  // guard: attempt-aged
        provenAt.map { now - $0 < Limits.acceptanceAge } ?? false ? Limits.unprovenAttempts : 1
    }

    private func capacity(_ now: Duration) -> Int {
        max(start(now), hasLapsed(now) ? 0 : limit)
    }

    /// Whether the burst is over for which the window has grown.
    private func hasLapsed(_ now: Duration) -> Bool {
        // The programs of a burst need a moment between a response and the next request; others do not keep it open.
        let pause = requests.count * 2 < limit ? Limits.pauseBetweenRequests : acceptancePause
        return acceptedAt.map { now - $0 > pause } ?? true
    }

    /// Returns when a request counts no more that ended without a verdict; `nil` if it is open.
    private func endOfMemory(_ request: Request) -> Duration? {
        let memory = provenAt == nil || request.isUnclear ? Limits.lostVerdictMemory : Limits.knownVerdictWait
        return request.endedAt.map { $0 + memory }
    }

    private var hasUnclear: Bool { requests.contains(where: \.isUnclear) }

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
        requests.remove(at: index)
        // Requests that were sent earlier were sent before any later change of the password.
        for earlier in requests.indices[..<index] {
            requests[earlier].isAtRisk = false
            requests[earlier].isUnclear = false
        }
        if !requests.isEmpty { requests.removeAll { !$0.isAtRisk && $0.endedAt != nil } }
        note(provenAt: sentAt)
        let current = capacity(now)
        let grows = waiting > 0 && sentAt >= since
        limit = min(grows ? 2 * current : current, most)
        acceptedAt = now
        acceptancePause = max(Limits.shortestAcceptancePause, (now - sentAt) + (now - sentAt))
    }

    /// Ends a request without a verdict, which the server did not check.
    mutating func end(_ fetch: FetchID) {
        guard let index = index(of: fetch) else { return }
        requests.remove(at: index)
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

    /// Forgets requests that ended long ago.
    mutating func expire(now: Duration) {
        if !requests.isEmpty { requests = requests.filter { endOfMemory($0).map { now < $0 } ?? true } }
        if hasLapsed(now) { limit = 0 }
    }

    private func index(of fetch: FetchID) -> Int? {
        requests.firstIndex { $0.fetch == fetch && $0.endedAt == nil }
    }
}
