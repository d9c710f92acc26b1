internal import EventLoop
internal import WatchwordCore
internal import WatchwordProtocol

/// The connection pools of an engine. Lives on its loop.
struct PoolTable {
    private let loop: EventLoop
    private let idle: IdleLimits
    private let acted: (ConnectionPool) -> Void
    private let common: ConnectionPool
    private var pools: [ConnectionIdentity: ConnectionPool] = [:]
    /// Told to close, and still in use by transfers.
    private var retired: [ConnectionPool] = []

    /// - Parameter acted: see `ConnectionPool`.
    /// - Throws: `TransferFailure` of kind `outOfMemory` or `internalError`.
    init(
        on loop: EventLoop, _ idle: IdleLimits, acted: @escaping (ConnectionPool) -> Void
    ) throws(TransferFailure) {
        (self.loop, self.idle, self.acted) = (loop, idle, acted)
        common = try ConnectionPool(on: loop, acted: acted)
    }

    /// The pool whose connections this transfer may use, and leave for others.
    mutating func pool(for transfer: Transfer) throws(TransferFailure) -> ConnectionPool {
        let request = transfer.request
        if request.identity != .none { return try pool(of: request, certificate: transfer.certificate?.content) }
        return request.options.delivery == .fromHeader ? try streamPool() : common
    }

    /// The pool of an identity; a new one when the marks of its connections have changed.
    private mutating func pool(
        of request: TransferRequest, certificate: CertificateContent?
    ) throws(TransferFailure) -> ConnectionPool {
        let marks = ConnectionMarks(request, certificate: certificate)
        if let pool = pools[request.identity] {
            // Who asks makes a connection that nobody else gets.
            if request.trust == .ask || pool.marks == marks { return pool }
            forget(request.identity)
        }
        let limit = request.leavesPassword ? min(idle.identity, idle.login) : idle.identity
        let pool = try ConnectionPool(on: loop, marks: marks, idleTime: limit, acted: acted)
        pools[request.identity] = pool
        return pool
    }

    /// The pool for bodies that are handed over on their way, of those without identity: they may wait for their readers for
    /// long, and must not use up the connections of the others. How many there are is bounded where they are asked for.
    private mutating func streamPool() throws(TransferFailure) -> ConnectionPool {
        if let pool = pools[.none] { return pool }
        let pool = try ConnectionPool(on: loop, idleTime: idle.identity, connectionsPerHost: 0, acted: acted)
        pools[.none] = pool
        return pool
    }

    /// No later transfer gets a connection of the identity. `closeUnused` has to follow.
    mutating func forget(_ identity: ConnectionIdentity) {
        if let pool = pools.removeValue(forKey: identity) { retired.append(pool) }
    }

    /// Whether there is something for `closeUnused`.
    var hasRetired: Bool { !retired.isEmpty }

    /// Closes what is told to close and no longer in use, and what nobody has used for long. Not while anybody acts on a pool.
    mutating func closeUnused() {
        if pools.isEmpty && retired.isEmpty { return }
        for (identity, pool) in pools where pool.isIdle {
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
        for pool in retired + pools.values + [common] { pool.close() }
        (pools, retired) = ([:], [])
    }
}
