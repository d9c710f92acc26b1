internal import CCurl
internal import EventLoop
internal import WatchwordCore

/// A libcurl connection cache, and the transfers that use it.
final class ConnectionPool {
    /// `nil` for a pool without identity, whose transfers leave no state on a connection.
    let signature: IdentitySignature?
    private let idleTime: Duration?
    let connections = OpenConnections()
    private let driver: MultiDriver
    private let closing: LoopTimer
    private let loop: EventLoop

    /// - Parameters:
    ///   - idleTime: the time without transfers after which the pool counts as idle; `nil` for never.
    ///   - acted: called after libcurl has acted on the transfers, and when the pool has become idle.
    /// - Throws: `TransferFailure` of kind `outOfMemory` or `internalError`.
    init(
        on loop: EventLoop, signature: IdentitySignature? = nil, idleTime: Duration? = nil,
        connectionsPerHost: Int = EngineLimits.connectionsPerHost, acted: @escaping (ConnectionPool) -> Void
    ) throws(TransferFailure) {
        let relay = Relay()
        (self.loop, self.signature, self.idleTime) = (loop, signature, idleTime)
        let moved = {
            if let pool = relay.pool { acted(pool) }
        }
        driver = try MultiDriver(on: loop, connectionsPerHost: connectionsPerHost, moved: moved)
        closing = LoopTimer(on: loop, moved)
        relay.pool = self
    }

    private final class Relay {
        unowned var pool: ConnectionPool?
    }

    var multi: MultiHandle { driver.multi }

    /// The number of transfers that use the pool.
    var running: Int { multi.running }

    func add(_ transfer: CurlTransfer) throws(TransferFailure) {
        try transfer.easy.set(CURLOPT_CLOSESOCKETDATA, pointer: Unmanaged.passUnretained(connections).toOpaque())
        try multi.add(transfer.easy)
        driver.began()
    }

    func remove(_ transfer: CurlTransfer) {
        multi.remove(transfer.easy)
        if let idleTime { closing.set(in: idleTime) }
    }

    /// Closes the connections. Every transfer must have been removed. The pool must not be used afterwards.
    func close() {
        closing.cancel()
        driver.close()
    }

    /// Whether the pool has had no transfers for `idleTime`.
    var isIdle: Bool { running == 0 && idleTime != nil && closing.deadline.map { $0 <= loop.now } ?? true }
}
