internal import Broker
internal import CPlatform
internal import EventLoop
internal import Glibc
internal import Logging

/// The socket of a client. Passes input to the service, and sends the output of the service.
///
/// Reading pauses while too much output is unsent. A client is disconnected if its unsent output exceeds a limit or if
/// it reads too slowly. Used on the loop only.
final class ClientSocket: ClientLink, ReadinessHandler, TurnEndHandler {
    private enum State {
        case open
        /// Reading is paused until the client has read enough of its output.
        case notRead
        /// Nothing is read, and no more output is accepted. When all output is sent, `then` is called, or the socket is
        /// closed if `then` is `nil`.
        case ending(then: (() -> Void)?)
        case closed
    }

    private let server: ClientServer
    private let descriptor: Int32
    private let peer: PeerIdentity
    private var input: PeerInput
    private var output = OutgoingBytes()
    private var id: ConnectionID?
    private var state = State.open
    private var isBlocked = false
    private var isPlanned = false
    private var reader: SlowReader?

    /// - Parameter descriptor: the accepted socket; this object takes ownership.
    init(_ server: ClientServer, descriptor: Int32, peer: PeerIdentity, wasListening: Bool) {
        (self.server, self.descriptor, self.peer) = (server, descriptor, peer)
        input = PeerInput(pid: peer.pid, wasListening: wasListening, earlyBytes: peer.earlyBytes)
    }

    func open() {
        id = server.service.connectionOpened(self, peer: peer)
        watch()
    }

    // MARK: Input

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        if events.contains(.hungUp) { return readRest() }
        if events.contains(.readable), isReading { read() }
        if events.contains(.writable) { plan() }
    }

    /// Reads the remaining input of a peer that has hung up, because its last messages still take effect, and closes
    /// the connection. Fetches that these messages start are cancelled in the same turn, before they send anything.
    private func readRest() {
        for _ in 0..<server.limits.lastReads {
            guard isReading else { return end() }
            read()
        }
    }

    private var isReading: Bool {
        if case .open = state { !input.hasEnded } else { false }
    }

    private func read() {
        let room = input.readsMuch ? server.limits.largeReadBytes : server.limits.readBytes
        let buffer = UnsafeMutableRawBufferPointer(rebasing: server.buffer[..<min(room, input.room)])
        switch input.read(descriptor, into: buffer) {
        case .bytes(let count):
            let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            // A full read without a line end is part of a large message, which is cheaper to read in large pieces.
            input.readsMuch = count >= server.limits.readBytes && memchr(bytes.baseAddress!, 0x0A, count) == nil
            if let id { server.service.received(bytes, from: id) }
            // The input may contain a password.
            watchword_wipe(buffer.baseAddress, count)
        case .strangers(let count):
            watchword_wipe(buffer.baseAddress, count)
            server.log.warning(
                "closing a connection: another process has sent data on it",
                metadata: ["pid": "\(peer.pid)"])
            end()
        case .nothing: break
        case .end: endInput()
        case .failed(let error):
            server.log.debug("connection failed", metadata: ["error": "\(error)"])
            end()
        }
    }

    /// Handles the end of input. A peer that has only shut down its writing side still gets its replies. If the peer
    /// has closed the socket, the connection ends at once.
    private func endInput() {
        guard !PeerInput.hasHungUp(descriptor) else { return end() }
        input.hasEnded = true
        watch()
        if let id { server.service.inputEnded(id) }
    }

    private func watch() {
        if case .closed = state { return }
        var events: ReadyEvents = isReading ? .readable : []
        if isBlocked { events.insert(.writable) }
        if !server.loop.watch(descriptor, events, self) { end() }
    }

    /// Closes the connection at once, and drops unsent output.
    private func end() {
        guard leave() else { return }
        Glibc.close(descriptor)
    }

    /// Removes the connection from the loop and the service, without closing the descriptor. Returns `false` if it was
    /// removed already.
    private func leave() -> Bool {
        if case .closed = state { return false }
        state = .closed
        server.loop.forget(descriptor)
        reader?.stop()
        reader = nil
        output.drop()
        server.closed(peer.pid)
        if let id { server.service.connectionClosed(id) }
        id = nil
        return true
    }

    // MARK: Output

    /// Queues output, which is sent at the end of this turn of the loop.
    func send(_ bytes: [UInt8]) {
        switch state {
        case .ending, .closed: return
        case .open, .notRead: break
        }
        output.append(bytes)
        plan()
    }

    private func plan() {
        guard !isPlanned else { return }
        isPlanned = true
        server.loop.atEndOfTurn(self)
    }

    func turnEnds() {
        isPlanned = false
        if case .closed = state { return }
        guard output.send(to: descriptor) else { return end() }
        isBlocked = output.count > 0
        if case .ending(let finish) = state, !isBlocked { return finish?() ?? end() }
        guard output.count <= server.limits.outgoingQueue else { return disconnect() }
        adjustReading()
        watch()
        if output.count == 0 { reader?.rest() }
        reportUnread()
        followReader()
    }

    private func adjustReading() {
        switch state {
        case .open where output.count > server.limits.highWaterMark: state = .notRead
        case .notRead where output.count < server.limits.lowWaterMark: state = .open
        case .open, .notRead, .ending, .closed: break
        }
    }

    func reportUnread() {
        if let id { server.service.leftUnread(output.count, id) }
    }

    /// Observes how fast the client reads while output is unsent, also while the connection is ending.
    private func followReader() {
        guard output.count > 0 else { return }
        if reader == nil { reader = SlowReader(of: self, on: server.loop, server.limits) }
        reader?.follow()
    }

    /// The number of bytes that the kernel has accepted so far.
    var sentBytes: Int { output.sentCount }

    var waitingBytes: Int { output.count }

    func abandon() { disconnect() }

    private func disconnect() {
        if case .closed = state { return }
        server.log.warning(
            "client disconnected: it does not read",
            metadata: ["pid": "\(peer.pid)", "waitingBytes": "\(output.count)"])
        end()
    }

    /// Sends `bytes` after all queued output, then passes ownership of the descriptor to `taker`.
    func detach(after bytes: [UInt8], to taker: @escaping @Sendable (Int32) -> Void) {
        send(bytes)
        finish { [unowned self] in
            let socket = descriptor
            // The rest of the input is a body, which any process with the attach token may send.
            guard watchword_ask_for_senders(socket, 0) == 0 else { return end() }
            if leave() { taker(socket) }
        }
    }

    /// Closes the connection after all queued output is sent.
    func close() { finish(nil) }

    private func finish(_ action: (() -> Void)?) {
        switch state {
        case .ending, .closed: return
        case .open, .notRead: break
        }
        state = .ending(then: action)
        watch()
        plan()
    }
}
