internal import Broker
internal import CPlatform
internal import EventLoop
internal import Glibc
internal import Logging

/// One client's socket: hands what it reads to the service, and sends what the service says.
///
/// Nothing is read while too much waits to be sent; too much for good ends the connection.
///
/// `@unchecked Sendable`: used on the loop only.
final class ClientSocket: ReadinessHandler, TurnEndHandler, ClientLink, @unchecked Sendable {
    private enum State {
        case open
        /// Too much waits to be sent: nothing is read until it has taken some of that.
        case notRead
        /// To be closed, or handed over, when everything is sent. Nothing is read, and nothing more sent.
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
    private var hasInputEnded = false
    /// The next read is of a large message.
    private var readsMuch = false
    private var isBlocked = false
    private var isPlanned = false
    private var reader: SlowReader?

    /// - Parameter descriptor: owned from now on.
    init(_ server: ClientServer, descriptor: Int32, peer: PeerIdentity, wasListening: Bool) {
        (self.server, self.descriptor, self.peer) = (server, descriptor, peer)
        input = PeerInput(pid: peer.pid, wasListening: wasListening)
    }

    func open() {
        id = server.service.connectionOpened(self, peer: peer)
        watch()
    }

    // MARK: From the socket

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        if events.contains(.hungUp) { return readRest() }
        if events.contains(.readable), isReading { read() }
        if events.contains(.writable) { plan() }
    }

    /// The peer is gone: what it has said still counts, but what it has asked for ends in this turn, before anything is sent.
    private func readRest() {
        for _ in 0..<server.limits.lastReads {
            guard isReading else { return end() }
            read()
        }
    }

    private var isReading: Bool {
        if case .open = state { !hasInputEnded } else { false }
    }

    private func read() {
        let room = readsMuch ? server.limits.largeReadBytes : server.limits.readBytes
        let buffer = UnsafeMutableRawBufferPointer(rebasing: server.buffer[..<room])
        switch input.read(descriptor, into: buffer) {
        case .bytes(let count):
            let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            // Where no line ends there is one large message, which costs less the more of it is read at once.
            readsMuch = count >= server.limits.readBytes && memchr(bytes.baseAddress!, 0x0A, count) == nil
            if let id { server.service.received(bytes, from: id) }
            // A message may hold a password.
            watchword_wipe(buffer.baseAddress, count)
        case .strangers(let count):
            watchword_wipe(buffer.baseAddress, count)
            server.log.warning(
                "another process than the one that connected has sent something; the connection ends",
                metadata: ["pid": "\(peer.pid)"])
            end()
        case .nothing: break
        case .end: endInput()
        case .failed(let error):
            server.log.debug("a connection ends with an error", metadata: ["error": "\(error)"])
            end()
        }
    }

    /// A peer that has only shut down its writing side is still owed its replies; one that is gone is told apart from it here,
    /// before anything is done for it that it does not want any more.
    private func endInput() {
        guard !PeerInput.hasHungUp(descriptor) else { return end() }
        hasInputEnded = true
        watch()
        if let id { server.service.inputEnded(id) }
    }

    private func watch() {
        if case .closed = state { return }
        var events: ReadyEvents = isReading ? .readable : []
        if isBlocked { events.insert(.writable) }
        if !server.loop.watch(descriptor, events, self) { end() }
    }

    /// Closes at once; what waits is dropped.
    private func end() {
        guard leave() else { return }
        Glibc.close(descriptor)
    }

    /// The connection is none any more, for the loop and for the service.
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

    // MARK: To the socket

    /// What is sent in one turn of the loop goes out together.
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
        tell()
        followReader()
    }

    private func adjustReading() {
        switch state {
        case .open where output.count > server.limits.highWaterMark: state = .notRead
        case .notRead where output.count < server.limits.lowWaterMark: state = .open
        case .open, .notRead, .ending, .closed: break
        }
    }

    func tell() {
        if let id { server.service.leftUnread(output.count, id) }
    }

    /// As long as something waits: also behind the last message, after which the connection is to end.
    private func followReader() {
        guard output.count > 0 else { return }
        if reader == nil { reader = SlowReader(of: self, on: server.loop, server.limits) }
        reader?.follow()
    }

    /// All that it has taken so far.
    var sentBytes: Int { output.sentCount }

    var waitingBytes: Int { output.count }

    func abandon() { disconnect() }

    private func disconnect() {
        if case .closed = state { return }
        server.log.warning(
            "a client does not read and is disconnected",
            metadata: ["pid": "\(peer.pid)", "waitingBytes": "\(output.count)"])
        end()
    }

    /// Behind everything sent so far. The descriptor is not this connection's any more.
    func handOver(after bytes: [UInt8], to taker: @escaping @Sendable (Int32) -> Void) {
        send(bytes)
        finish { [unowned self] in
            let socket = descriptor
            // What comes now is a body, and the token was for whoever has it.
            guard watchword_ask_for_senders(socket, 0) == 0 else { return end() }
            if leave() { taker(socket) }
        }
    }

    /// Behind everything sent so far.
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
