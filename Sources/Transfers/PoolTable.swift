internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

/// The pools of an engine's identities. Lives on the engine's thread.
struct PoolTable {
    /// After which the connections of an identity are closed.
    let idleTime: Duration
    /// The same for connections that hold the password of their login.
    private let loginIdleTime: Duration
    private var pools: [ConnectionIdentity: IdentityPool] = [:]
    /// Told to close, and still in use by transfers.
    private var retired: [IdentityPool] = []

    init(idleTime: Duration, loginIdleTime: Duration) {
        (self.idleTime, self.loginIdleTime) = (idleTime, loginIdleTime)
    }

    private var all: [IdentityPool] { retired + pools.values }

    /// The pool for a request that has an identity; a new one when the marks of its connections have changed.
    mutating func pool(
        for request: TransferRequest, certificate: CertificateContent?
    ) throws(TransferFailure) -> IdentityPool {
        let marks = ConnectionMarks(request, certificate: certificate)
        if let pool = pools[request.identity] {
            // Who asks makes a connection that nobody else gets.
            if request.trust == .ask || pool.marks == marks { return pool }
            forget(request.identity)
        }
        let limit = request.leavesPassword ? min(idleTime, loginIdleTime) : idleTime
        let pool = try IdentityPool(marks: marks, idleTime: limit)
        pools[request.identity] = pool
        return pool
    }

    /// The pool for bodies that are handed over on their way, of those without identity: they may wait for their readers for
    /// long, and must not use up the connections of the others. How many there are is bounded where they are asked for.
    mutating func streamPool(for request: TransferRequest) throws(TransferFailure) -> IdentityPool {
        if let pool = pools[.none] { return pool }
        let pool = try IdentityPool(
            marks: ConnectionMarks(request, certificate: nil), idleTime: idleTime, connectionsPerHost: 0)
        pools[.none] = pool
        return pool
    }

    /// No later transfer gets a connection of the identity.
    mutating func forget(_ identity: ConnectionIdentity) {
        guard let pool = pools.removeValue(forKey: identity) else { return }
        retired.append(pool)
        closeUnused(at: .now)
    }

    /// Closes what is told to close and no longer in use, and what nobody has used for long.
    mutating func closeUnused(at now: ContinuousClock.Instant) {
        if isEmpty { return }
        for (identity, pool) in pools where pool.isIdle(at: now) {
            pools[identity] = nil
            pool.close()
        }
        retired.removeAll { pool in
            guard pool.running == 0 else { return false }
            pool.close()
            return true
        }
    }

    /// Every transfer must have been removed.
    mutating func closeAll() {
        for pool in all { pool.close() }
        (pools, retired) = ([:], [])
    }

    var isEmpty: Bool { pools.isEmpty && retired.isEmpty }

    /// One sleep in the poll of `multi`, until `alarm` rings or something happens to `others`, at most `limit` milliseconds or
    /// `until` then, and then what it was ended for. `false` when nothing has happened.
    func sleep(
        in multi: MultiHandle, _ alarm: Alarm, with others: inout [curl_waitfd], until end: ContinuousClock.Instant?,
        limit: Int32
    ) -> Bool {
        let pools = all
        let groups = pools.map(\.descriptors)
        var descriptors = others + groups.joined()
        let wakeTime = (pools.map(\.nextTime) + [end]).compactMap { $0 }.min()
        let somethingHappened = multi.sleep(alarm, &descriptors, milliseconds: milliseconds(until: wakeTime, limit))
        let now = ContinuousClock.now
        others = Array(descriptors.prefix(others.count))
        var start = others.count
        for (pool, group) in zip(pools, groups) {
            pool.act(on: descriptors[start..<(start + group.count)], at: now)
            start += group.count
        }
        if !somethingHappened { for pool in pools { pool.askAgain() } }
        return somethingHappened
    }

    /// Moves what can be moved without waiting.
    func act() {
        if isEmpty { return }
        let now = ContinuousClock.now
        for pool in all { pool.act(on: [], at: now) }
    }

    /// The next transfer of any pool that has ended.
    func nextFinished() -> (easy: EasyHandle, code: CURLcode)? {
        if isEmpty { return nil }
        for pool in all {
            if let finished = pool.multi.nextFinished() { return finished }
        }
        return nil
    }

    /// Rounded up, so that the time has come when the sleep ends.
    private func milliseconds(until time: ContinuousClock.Instant?, _ limit: Int32) -> Int32 {
        guard let time else { return limit }
        let left = time - .now
        guard left > .zero else { return 0 }
        return left < .milliseconds(Int64(limit)) ? Int32((left / .milliseconds(1)).rounded(.up)) : limit
    }
}
