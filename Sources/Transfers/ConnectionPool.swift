internal import CCurl
internal import EventLoop
internal import WatchwordCore

/// One connection cache of libcurl's, and the transfers that use it: a multi handle, moved by an event loop.
///
/// libcurl says through callbacks which sockets to watch and when it wants to be called, and is never called from within them.
final class ConnectionPool: ReadinessHandler {
    let multi: MultiHandle
    /// `nil` for the pool of those that leave nothing on a connection.
    let marks: ConnectionMarks?
    private let loop: EventLoop
    private let idleTime: Duration?
    private let acted: (ConnectionPool) -> Void
    private var sockets: Set<curl_socket_t> = []
    private(set) var running = 0
    private var isKicked = false
    private var quiet = QuietTime()
    private var hasActed = false
    /// When libcurl wants to be called.
    private lazy var timer = LoopTimer(on: loop) { [unowned self] in act(on: CURL_SOCKET_TIMEOUT) }
    private lazy var kick: () -> Void = { [weak self] in
        guard let self, isKicked else { return }
        isKicked = false
        act(on: CURL_SOCKET_TIMEOUT)
    }
    /// See `QuietTime`.
    private lazy var nudging = LoopTimer(on: loop) { [unowned self] in nudge() }
    private lazy var closing = LoopTimer(on: loop) { [unowned self] in acted(self) }

    /// - Parameters:
    ///   - idleTime: after which it is idle, when nobody uses it; `nil` for never.
    ///   - acted: called when libcurl has moved the transfers, and when the pool has become idle.
    /// - Throws: `TransferFailure` of kind `outOfMemory` or `internalError`.
    init(
        on loop: EventLoop, marks: ConnectionMarks? = nil, idleTime: Duration? = nil,
        connectionsPerHost: Int = EngineLimits.connectionsPerHost, acted: @escaping (ConnectionPool) -> Void
    ) throws(TransferFailure) {
        (self.loop, self.marks, self.idleTime, self.acted) = (loop, marks, idleTime, acted)
        multi = try MultiHandle(connectionsPerHost: connectionsPerHost)
        do throws(TransferFailure) {
            try multi.watch(
                Unmanaged.passUnretained(self).toOpaque(),
                sockets: { _, socket, event, user, _ in
                    ConnectionPool.at(user).watch(socket, event)
                    return 0
                },
                timer: { _, milliseconds, user in
                    ConnectionPool.at(user).wait(milliseconds: milliseconds)
                    return 0
                })
        } catch {
            multi.close()
            throw error
        }
    }

    func add(_ transfer: Transfer) throws(TransferFailure) {
        try multi.add(transfer.easy)
        running += 1
        if nudging.deadline == nil { nudging.set(in: .milliseconds(quiet.limit)) }
    }

    func remove(_ transfer: Transfer) {
        multi.remove(transfer.easy)
        running -= 1
        if let idleTime { closing.set(in: idleTime) }
    }

    /// Closes the connections. Every transfer must have been removed; nothing may be called afterwards.
    func close() {
        for timer in [timer, nudging, closing] { timer.cancel() }
        isKicked = false
        multi.close()
        for socket in sockets { loop.forget(socket, of: self) }
    }

    /// Nobody uses it, and nobody has for long.
    var isIdle: Bool { running == 0 && idleTime != nil && closing.deadline.map { $0 <= loop.now } ?? true }

    // MARK: From the loop

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        hasActed = true
        let input = events.isDisjoint(with: [.readable, .hungUp]) ? 0 : CURL_CSELECT_IN
        act(on: descriptor, input | (events.contains(.writable) ? CURL_CSELECT_OUT : 0))
    }

    private func act(on socket: curl_socket_t, _ events: Int32 = 0) {
        multi.act(on: socket, events)
        acted(self)
    }

    /// Lets libcurl look at every socket on which nothing has happened for a while: see `QuietTime`.
    private func nudge() {
        guard running > 0 else { return }
        quiet.slept(somethingHappened: hasActed)
        nudging.set(in: .milliseconds(quiet.limit))
        if hasActed {
            hasActed = false
            return
        }
        for socket in Array(sockets) where sockets.contains(socket) { multi.act(on: socket) }
        acted(self)
    }

    // MARK: From libcurl

    private static func at(_ user: UnsafeMutableRawPointer?) -> ConnectionPool {
        guard let user else { preconditionFailure("libcurl calls back without its owner") }
        return Unmanaged<ConnectionPool>.fromOpaque(user).takeUnretainedValue()
    }

    private func watch(_ socket: curl_socket_t, _ event: Int32) {
        guard event != CURL_POLL_REMOVE else {
            if sockets.remove(socket) != nil { loop.forget(socket, of: self) }
            return
        }
        var events: ReadyEvents = []
        if event & CURL_POLL_IN != 0 { events.insert(.readable) }
        if event & CURL_POLL_OUT != 0 { events.insert(.writable) }
        sockets.insert(socket)
        loop.watch(socket, events, self)
    }

    private func wait(milliseconds: Int) {
        guard milliseconds == 0 else {
            return timer.set(milliseconds < 0 ? nil : loop.now + .milliseconds(milliseconds))
        }
        timer.set(nil)
        guard !isKicked else { return }
        isKicked = true
        loop.soon(kick)
    }
}
