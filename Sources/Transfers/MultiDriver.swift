internal import CCurl
internal import EventLoop
internal import WatchwordCore

/// Drives a multi handle with an event loop. libcurl's callbacks say which sockets to watch and when to call libcurl; they do
/// not call libcurl themselves.
final class MultiDriver: ReadinessHandler {
    let multi: MultiHandle
    private let loop: EventLoop
    private let moved: () -> Void
    private var sockets: Set<curl_socket_t> = []
    private var isKicked = false
    private var quiet = PollBackoff()
    /// Calls libcurl at the time that it requested.
    private lazy var timer = LoopTimer(on: loop) { [unowned self] in act(on: CURL_SOCKET_TIMEOUT) }
    private lazy var kick: () -> Void = { [weak self] in
        guard let self, isKicked else { return }
        isKicked = false
        act(on: CURL_SOCKET_TIMEOUT)
    }
    /// See `PollBackoff`.
    private lazy var nudging = LoopTimer(on: loop) { [unowned self] in nudge() }

    /// - Parameter moved: called after libcurl has acted on the transfers.
    /// - Throws: `TransferFailure` of kind `outOfMemory` or `internalError`.
    init(on loop: EventLoop, connectionsPerHost: Int, moved: @escaping () -> Void) throws(TransferFailure) {
        (self.loop, self.moved) = (loop, moved)
        multi = try MultiHandle(connectionsPerHost: connectionsPerHost)
        do throws(TransferFailure) {
            try multi.watch(
                Unmanaged.passUnretained(self).toOpaque(),
                sockets: { easy, socket, event, user, _ in
                    MultiDriver.at(user).watch(socket, event)
                    // Connections that are closed later belong to handles of libcurl, which have no owner.
                    if event & CURL_POLL_IN == 0, let easy, let owner = EasyHandle(pointer: easy).owner {
                        CurlTransfer.at(owner).readsNoMore()
                    }
                    return 0
                },
                timer: { _, milliseconds, user in
                    MultiDriver.at(user).wait(milliseconds: milliseconds)
                    return 0
                })
        } catch {
            multi.close()
            throw error
        }
    }

    /// Called when a transfer has started.
    func began() {
        if nudging.deadline == nil { nudging.set(in: .milliseconds(quiet.limit)) }
    }

    /// Closes the connections. Every transfer must have been removed. The driver must not be used afterwards.
    func close() {
        for timer in [timer, nudging] { timer.cancel() }
        isKicked = false
        multi.close()
        for socket in sockets { loop.forget(socket, of: self) }
    }

    // MARK: From the loop

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        quiet.recordEvent()
        let input = events.isDisjoint(with: [.readable, .hungUp]) ? 0 : CURL_CSELECT_IN
        act(on: descriptor, input | (events.contains(.writable) ? CURL_CSELECT_OUT : 0))
    }

    private func act(on socket: curl_socket_t, _ events: Int32 = 0) {
        multi.act(on: socket, events)
        moved()
    }

    /// Calls libcurl for every socket after a while without events; see `PollBackoff`.
    private func nudge() {
        guard multi.running > 0 else { return }
        let wasQuiet = quiet.sleepEnded()
        nudging.set(in: .milliseconds(quiet.limit))
        guard wasQuiet else { return }
        for socket in Array(sockets) where sockets.contains(socket) { multi.act(on: socket) }
        moved()
    }

    // MARK: From libcurl

    private static func at(_ user: UnsafeMutableRawPointer?) -> MultiDriver {
        guard let user else { preconditionFailure("libcurl called back without an owner") }
        return Unmanaged<MultiDriver>.fromOpaque(user).takeUnretainedValue()
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

/// Poll backoff (10 ms to 1 s) that works around stalled HTTP/2 streams in libcurl 7.88.1.
///
/// Sometimes libcurl does not process the data of a stream, and waits for a socket on which nothing more arrives: in
/// bursts of a hundred transfers, one in fifty stalled until the next timer, half a minute later. Calling libcurl again for
/// the socket continues the stream.
struct PollBackoff {
    private static let shortest: Int32 = 10
    private static let longest: Int32 = 1000

    private var rounds: Int32 = 0
    private var hasEvent = false

    /// The current interval, in milliseconds.
    var limit: Int32 { min(Self.shortest << rounds, Self.longest) }

    mutating func recordEvent() { hasEvent = true }

    /// Ends the current interval and starts the next. Returns whether it passed without an event.
    mutating func sleepEnded() -> Bool {
        defer { hasEvent = false }
        rounds = hasEvent ? 0 : min(rounds + 1, 7)
        return !hasEvent
    }
}
