internal import Broker
internal import CPlatform
internal import EventLoop
internal import Glibc
internal import WatchwordCore

/// The socket of a program at a front: receives and sends for a `FrontMachine`, and passes its requests to the service. Used on
/// the loop only.
final class FrontConnection: FrontLink, ReadinessHandler, TurnEndHandler {
    private static let readBytes = 16 << 10

    let front: FrontID
    private let server: FrontServer
    private let descriptor: Int32
    private var machine = FrontMachine()
    private var output = OutgoingBytes()
    private var isBlocked = false
    private var isPlanned = false
    private var admission: (id: ConnectionID, pid: Int32)?
    private var upload: FrontUpload?
    private var tunnel: Tunnel?
    private lazy var timer = LoopTimer(on: server.loop) { [unowned self] in expire() }

    /// - Parameter descriptor: the accepted socket; this object takes ownership.
    init(_ server: FrontServer, descriptor: Int32, front: FrontID) {
        (self.server, self.descriptor, self.front) = (server, descriptor, front)
    }

    /// Admits the program, and starts to read.
    func identified(_ peer: FrontPeer) {
        guard machine.isIdentifying, let service = server.service else { return }
        guard server.take(peer.identity.pid) else { return end() }
        guard let id = service.frontConnectionOpened(self, peer, at: front) else {
            server.release(peer.identity.pid)
            return end()
        }
        admission = (id, peer.identity.pid)
        machine.admit()
        timer.set(in: FrontMachine.idleTime)
        watch()
    }

    private var backlog: FrontMachine.Backlog {
        FrontMachine.Backlog(output: output.count, hasUploadRoom: upload?.hasRoom == true)
    }

    // MARK: Input

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        if events.contains(.hungUp) { return end() }
        if events.contains(.readable), machine.isReading(backlog) { read() }
        if events.contains(.writable) { plan() }
    }

    private func read() {
        let buffer = UnsafeMutableRawBufferPointer(rebasing: server.buffer[..<Self.readBytes])
        let count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
        if count > 0 {
            if let bytes = machine.receive(UnsafeRawBufferPointer(rebasing: buffer[..<count])) { upload?.write(bytes) }
            watchword_wipe(buffer.baseAddress, count)
            process()
        } else if count == 0 {
            act(machine.endInput(isPeerOpen: server.isPeerOpen(descriptor), backlog))
        } else if errno != EAGAIN && errno != EINTR {
            end()
        }
    }

    /// Handles the parts of requests that have been received, until one request has to be answered.
    private func process() {
        while let command = machine.next(backlog) { perform(command) }
        act(machine.rest(backlog))
    }

    private func act(_ action: FrontMachine.Action) {
        switch action {
        case .nothing: break
        case .wait(let limit):
            set(limit)
            watch()
        case .process: process()
        case .finishUpload:
            upload?.finish()
            watch()
        case .shutDown:
            shutdown(descriptor, Int32(SHUT_WR))
            timer.set(in: FrontMachine.lingering)
            watch()
        case .finish:
            timer.set(in: FrontMachine.idleTime)
            plan()
        case .end: end()
        }
    }

    private func perform(_ command: FrontMachine.Command) {
        switch command {
        case .begin(let request, let body):
            guard !request.isConnect || server.hasRoomForTunnel else {
                return refuse(FrontRefusal(503, "busy", "too many connections of the broker; try again later"))
            }
            if case .stream = body {
                upload = FrontUpload(on: server.loop) { [unowned self] in process() }
                guard upload != nil else { return end() }
            }
            if let id = admission?.id { server.service?.requested(request, body, on: id) }
        case .upload(let bytes): upload?.write(bytes)
        case .finishUpload: upload?.finish()
        case .breakRequest(let refusal):
            upload?.close()
            if let id = admission?.id { server.service?.requestBroken(refusal, on: id) }
        case .refuse(let refusal): refuse(refusal)
        }
    }

    private func refuse(_ refusal: FrontRefusal) {
        send(refusal.bytes(at: server.clock.sinceEpoch))
        close()
    }

    /// Returns the descriptor of the streamed body, which the program may now send.
    func takeBody() -> Int32? {
        if machine.takeContinue() { send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
        return upload?.takeReader()
    }

    private func set(_ limit: FrontMachine.TimeLimit) {
        switch limit {
        case .keep: break
        case .none: timer.set(nil)
        case .after(let time): timer.set(in: time)
        }
    }

    private func watch() {
        guard machine.isOpen else { return }
        var events: ReadyEvents = machine.isReading(backlog) ? .readable : []
        if isBlocked { events.insert(.writable) }
        if !server.loop.watch(descriptor, events, self) { end() }
    }

    // MARK: Output

    /// Queues output, which is sent at the end of this turn of the loop.
    func send(_ bytes: [UInt8]) {
        guard machine.acceptsOutput else { return }
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
        guard machine.isOpen else { return }
        let before = output.count
        guard output.send(to: descriptor) else { return end() }
        isBlocked = output.count > 0
        act(machine.sent(backlog, before: before, isLimited: timer.deadline != nil))
        if machine.continues(backlog, before: before) { server.loop.soon { [weak self] in self?.process() } }
        if machine.isDrained(backlog, before: before), let admission { server.service?.drained(admission.id) }
    }

    var waitingBytes: Int { output.count }

    /// Ends the response, and reads the next request or closes the connection.
    func endResponse(keepsAlive: Bool) {
        let action = machine.endResponse(keepsAlive: keepsAlive)
        guard action != .nothing else { return }
        upload?.close()
        upload = nil
        guard action == .process else { return act(action) }
        // In a call of its own, so that pipelined requests do not nest.
        server.loop.soon { [weak self] in self?.process() }
    }

    /// Closes the connection after all queued output is sent.
    func close() { act(machine.close()) }

    /// Closes the connection at once.
    func abandon() { end() }

    /// Does nothing: a front has no JSON-RPC messages after which its socket could be detached.
    func detach(after bytes: [UInt8], to taker: @escaping @Sendable (Int32) -> Void) {}

    /// Closes the connection, because its front closes. A response that is complete is still sent.
    func leaveFront() { if !machine.isEnding { end() } }

    /// Relays bytes from now on, after the output queued so far.
    func openTunnel(to origin: Int32) {
        guard let early = machine.beginTunnel() else {
            Glibc.close(origin)
            return
        }
        server.loop.forget(descriptor)
        watchword_keep_alive(descriptor)
        watchword_keep_alive(origin)
        var greeting = OutgoingBytes()
        swap(&greeting, &output)
        let tunnel = Tunnel(
            on: server.loop, server.buffer, program: descriptor, origin: origin, early: early, greeting: greeting
        ) { [unowned self] in end() }
        self.tunnel = tunnel
        timer.set(in: FrontMachine.programCheck)
        tunnel.start()
    }

    /// Passes on all further input as it is, to the origin's end of the upload.
    func switchProtocol() {
        guard let (early, isAll) = machine.switchProtocol() else { return }
        timer.set(in: FrontMachine.programCheck)
        upload?.write(early)
        if isAll { upload?.finish() }
        watch()
    }

    private func expire() {
        guard machine.outlivesTime, server.isPeerOpen(descriptor) else { return end() }
        timer.set(in: FrontMachine.programCheck)
    }

    private func end() {
        guard machine.end() else { return }
        tunnel?.stop()
        tunnel = nil
        timer.cancel()
        upload?.close()
        upload = nil
        server.loop.forget(descriptor)
        Glibc.close(descriptor)
        output.drop()
        if let (id, pid) = admission.take() {
            server.service?.frontConnectionClosed(id)
            server.release(pid)
        }
        server.remove(self)
    }
}
