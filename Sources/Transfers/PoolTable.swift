internal import EventLoop
internal import WatchwordCore
internal import WatchwordProtocol

/// The connection pools of an engine. Used on its loop only.
struct PoolTable {
    private let loop: EventLoop
    private let idle: IdleLimits
    private let acted: (ConnectionPool) -> Void
    private let common: ConnectionPool
    private var pools: [ConnectionIdentity: ConnectionPool] = [:]
    /// Pools that are closed as soon as no transfer uses them.
    private var retired: [ConnectionPool] = []

    /// - Parameter acted: see `ConnectionPool`.
    /// - Throws: `TransferFailure` of kind `outOfMemory` or `internalError`.
    init(
        on loop: EventLoop, _ idle: IdleLimits, acted: @escaping (ConnectionPool) -> Void
    ) throws(TransferFailure) {
        (self.loop, self.idle, self.acted) = (loop, idle, acted)
        common = try ConnectionPool(on: loop, acted: acted)
    }

    /// Returns the pool whose connections this transfer shares with others.
    mutating func pool(for transfer: CurlTransfer) throws(TransferFailure) -> ConnectionPool {
        let request = transfer.request
        if request.identity != .none {
            return try pool(of: request, certificate: transfer.connections.certificate?.content)
        }
        return request.options.delivery == .fromHeader ? try streamPool() : common
    }

    /// Returns the pool of an identity; a new one if the signature of its connections has changed.
    private mutating func pool(
        of request: SharedRequest, certificate: CertificateContent?
    ) throws(TransferFailure) -> ConnectionPool {
        let signature = IdentitySignature(request, certificate: certificate)
        if let pool = pools[request.identity] {
            // A request with `.ask` opens a connection that is not reused.
            if request.trust == .ask || pool.signature == signature { return pool }
            forget(request.identity)
        }
        let limit = request.leavesPassword ? min(idle.identity, idle.login) : idle.identity
        let pool = try ConnectionPool(on: loop, signature: signature, idleTime: limit, acted: acted)
        pools[request.identity] = pool
        return pool
    }

    /// Returns the pool for streamed bodies without identity. Their transfers may wait long for their readers, and must not use
    /// up the connections of other transfers. The broker limits the number of streamed bodies.
    private mutating func streamPool() throws(TransferFailure) -> ConnectionPool {
        if let pool = pools[.none] { return pool }
        let pool = try ConnectionPool(on: loop, idleTime: idle.identity, connectionsPerHost: 0, acted: acted)
        pools[.none] = pool
        return pool
    }

    /// Retires the pool of an identity: no later transfer uses its connections. The caller must call `closeUnused` later.
    mutating func forget(_ identity: ConnectionIdentity) {
        if let pool = pools.removeValue(forKey: identity) { retired.append(pool) }
    }

    /// Whether there are retired pools for `closeUnused`.
    var hasRetired: Bool { !retired.isEmpty }

    /// Closes idle pools, and retired pools without transfers. Must not be called during a call on a pool.
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

    /// Closes all pools. Every transfer must have been removed.
    mutating func closeAll() {
        for pool in retired + pools.values + [common] { pool.close() }
        (pools, retired) = ([:], [])
    }
}

/// The properties of a connection that distinguish one identity from another. If they change under the same identity, for
/// example because a certificate file was replaced, its previous connections are not used again.
struct IdentitySignature: Equatable {
    private let trust: TrustPolicy
    private let certificate: CertificateContent?
    private let handshakes: [Handshake]

    /// - Parameter certificate: the content of the client certificate that this request uses; its key was checked when it
    ///   was loaded.
    init(_ request: SharedRequest, certificate: CertificateContent?) {
        trust = request.trust
        self.certificate = certificate
        handshakes = request.handshakes
    }
}
