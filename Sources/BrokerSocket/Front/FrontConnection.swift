internal import Broker
internal import CPlatform
internal import EventLoop
internal import Glibc
internal import WatchwordCore

/// The connection of a program to a front. Parses its requests one after the other, passes them to the service, and sends
/// the responses. Used on the loop only.
final class FrontConnection: ReadinessHandler, TurnEndHandler {
    private enum State {
        /// Nothing is read until the program is identified.
        case identifying
        /// No request is open.
        case idle
        /// A small body is received before the request is passed on.
        case collecting(FrontRequest)
        /// The request was passed on.
        case answering
        /// All further input is passed on as it is, in another protocol.
        case switched
        /// After all output is sent, the input is discarded until the program closes the connection.
        case ending
        case tunnel(Tunnel)
        case closed
    }

    /// The state of the two directions.
    private struct Flow {
        var isBlocked = false
        var isPlanned = false
        var hasInputEnded = false
        /// Whether the program waits for `100 Continue`.
        var expectsContinue = false
        /// Whether the program waits for the switch to another protocol. Until then nothing is uploaded.
        var expectsSwitch = false
        /// The body of a request in the state `collecting`.
        var collected: [UInt8] = []
    }

    /// The sizes and times of one connection.
    private enum Limit {
        /// The largest body that is received before the request is passed on.
        static let smallBody = 64 << 10
        /// Bytes of later requests that are read while a request is being answered.
        static let ahead = 64 << 10
        /// Unsent output above which the service has to wait.
        static let highWaterMark = 256 << 10
        static let readBytes = 16 << 10
        /// The time for the next request, for a part of it, and for reading a part of a response.
        static let idle = Duration.seconds(60)
        /// The interval at which a tunnel, or a connection with another protocol, checks that its program has not closed it.
        static let programCheck = Duration.seconds(30)
        /// The time that a closed connection is still read.
        static let lingering = Duration.seconds(2)
    }

    let front: FrontID
    private let server: FrontServer
    private let descriptor: Int32
    private var reader = FrontRequestReader()
    private var output = OutgoingBytes()
    private var admission: (id: ConnectionID, pid: Int32)?
    private var state = State.identifying
    private var upload: FrontUpload?
    private var flow = Flow()
    private lazy var timer = LoopTimer(on: server.loop) { [unowned self] in expire() }

    /// - Parameter descriptor: the accepted socket; this object takes ownership.
    init(_ server: FrontServer, descriptor: Int32, front: FrontID) {
        (self.server, self.descriptor, self.front) = (server, descriptor, front)
    }

    /// Admits the program, and starts to read.
    func identified(_ peer: FrontPeer) {
        guard case .identifying = state, let service = server.service else { return }
        guard server.take(peer.identity.pid) else { return end() }
        let link = FrontSocketLink(socket: LoopBound(self, to: server.loop))
        guard let id = service.frontConnectionOpened(link, peer, at: front) else {
            server.release(peer.identity.pid)
            return end()
        }
        admission = (id, peer.identity.pid)
        state = .idle
        timer.set(in: Limit.idle)
        watch()
    }

    // MARK: Input

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        if events.contains(.hungUp) { return end() }
        if events.contains(.readable), isReading { read() }
        if events.contains(.writable) { plan() }
    }

    private var isReading: Bool {
        guard !flow.hasInputEnded else { return false }
        switch state {
        case .idle: return output.count < Limit.highWaterMark
        case .collecting, .ending: return true
        case .switched: return upload?.hasRoom == true
        case .answering: return isUploading ? upload?.hasRoom == true : reader.bufferedBytes < Limit.ahead
        case .identifying, .tunnel, .closed: return false
        }
    }

    private var isUploading: Bool { upload.map { !$0.isComplete && !flow.expectsSwitch } ?? false }

    /// Whether more of the request's body can be taken, so that the program must not keep the fetch waiting.
    private var awaitsBody: Bool { isUploading && upload?.hasRoom == true }

    private func read() {
        let buffer = UnsafeMutableRawBufferPointer(rebasing: server.buffer[..<Limit.readBytes])
        let count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
        if count > 0 {
            if case .ending = state { return }
            if case .switched = state {
                upload?.write(Array(buffer[..<count]))
            } else {
                reader.append(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
            watchword_wipe(buffer.baseAddress, count)
            process()
        } else if count == 0 {
            endInput()
        } else if errno != EAGAIN && errno != EINTR {
            end()
        }
    }

    /// Handles the end of input. A program that has only shut down its writing side still gets its responses, also those to
    /// requests that it has sent ahead.
    private func endInput() {
        flow.hasInputEnded = true
        guard server.isPeerOpen(descriptor) else { return end() }
        switch state {
        case .answering where !isUploading: watch()
        case .ending where output.count > 0: watch()
        case .switched:
            upload?.finish()
            watch()
        case .idle: process()
        default: end()
        }
    }

    /// Handles the parts of requests that have been received, until one request has to be answered.
    private func process() {
        while true {
            switch state {
            // A program that sends requests without reading the responses has to wait.
            case .idle where output.count >= Limit.highWaterMark: return watch()
            case .idle, .collecting: break
            case .answering where awaitsBody: break
            default: return settle()
            }
            guard let item = reader.next() else { return settle() }
            handle(item)
        }
    }

    private func settle() {
        // No further request can come.
        if case .idle = state, flow.hasInputEnded { return close() }
        switch state {
        case .idle, .collecting: timer.set(in: Limit.idle)
        case .answering: timer.set(awaitsBody || output.count > 0 ? server.loop.now + Limit.idle : nil)
        case .switched: break
        case .identifying, .ending, .tunnel, .closed: return
        }
        watch()
    }

    private func handle(_ item: FrontRequestReader.Item) {
        switch (item, state) {
        case (.head(let request), _):
            switch request.body {
            case .none where request.upgrade != nil: beginUpload(request, size: nil)
            case .none: begin(request, .none)
            case .sized(let size) where size > Limit.smallBody || request.expectsContinue:
                beginUpload(request, size: size)
            case .chunked where request.expectsContinue: beginUpload(request, size: nil)
            case .sized, .chunked: state = .collecting(request)
            }
        case (.body(let part), .collecting(let request)):
            flow.collected += part
            if flow.collected.count > Limit.smallBody {
                beginUpload(request, size: nil)
                upload?.write(takeCollected())
            }
        case (.body(let part), _): upload?.write(part)
        case (.end, .collecting(let request)): begin(request, .bytes(takeCollected()))
        case (.end, _): upload?.finish()
        case (.refused(let refusal), .answering):
            // The origin must not take the part for the whole body.
            upload?.close()
            if let id = admission?.id { server.service?.requestBroken(refusal, on: id) }
        case (.refused(let refusal), _):
            refuse(refusal)
        }
    }

    private func refuse(_ refusal: FrontRefusal) {
        send(refusal.bytes(at: server.clock.sinceEpoch))
        close()
    }

    private func takeCollected() -> [UInt8] {
        defer { flow.collected = [] }
        return flow.collected
    }

    private func begin(_ request: FrontRequest, _ body: FrontBody) {
        guard let id = admission?.id else { return }
        guard !request.isConnect || server.hasRoomForTunnel else {
            return refuse(FrontRefusal(503, "busy", "too many connections of the broker; try again later"))
        }
        state = .answering
        server.service?.requested(request, body, on: id)
    }

    private func beginUpload(_ request: FrontRequest, size: Int?) {
        upload = FrontUpload(on: server.loop) { [unowned self] in process() }
        guard upload != nil else { return end() }
        flow.expectsContinue = request.expectsContinue
        flow.expectsSwitch = request.body == .none
        begin(request, .stream(size: size))
    }

    /// Returns the descriptor of the streamed body, which the program may now send.
    func takeBody() -> Int32? {
        if flow.expectsContinue { send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
        flow.expectsContinue = false
        return upload?.takeReader()
    }

    private func watch() {
        switch state {
        case .identifying, .tunnel, .closed: return
        case .idle, .collecting, .answering, .switched, .ending: break
        }
        var events: ReadyEvents = isReading ? .readable : []
        if flow.isBlocked { events.insert(.writable) }
        if !server.loop.watch(descriptor, events, self) { end() }
    }

    // MARK: Output

    /// Queues output, which is sent at the end of this turn of the loop.
    func send(_ bytes: [UInt8]) {
        switch state {
        case .idle, .collecting, .answering, .switched: break
        case .identifying, .ending, .tunnel, .closed: return
        }
        output.append(bytes)
        plan()
    }

    private func plan() {
        guard !flow.isPlanned else { return }
        flow.isPlanned = true
        server.loop.atEndOfTurn(self)
    }

    func turnEnds() {
        flow.isPlanned = false
        switch state {
        case .identifying, .tunnel, .closed: return
        case .idle, .collecting, .answering, .switched, .ending: break
        }
        let before = output.count
        guard output.send(to: descriptor) else { return end() }
        flow.isBlocked = output.count > 0
        if case .ending = state, !flow.isBlocked {
            // A closed socket with unread input would make the kernel discard the response.
            if flow.hasInputEnded { return end() }
            shutdown(descriptor, Int32(SHUT_WR))
            timer.set(in: Limit.lingering)
            return watch()
        }
        adjustTimer(hasProgressed: before > output.count)
        watch()
        if case .idle = state, before >= Limit.highWaterMark, output.count < Limit.highWaterMark {
            server.loop.soon { [weak self] in self?.process() }
        }
        switch state {
        case .answering, .switched:
            if before > 0, output.count < Limit.highWaterMark, let admission { server.service?.drained(admission.id) }
        case .identifying, .idle, .collecting, .ending, .tunnel, .closed: break
        }
    }

    /// Limits the time for reading a part of the output; while the response is awaited, there is no limit here.
    private func adjustTimer(hasProgressed: Bool) {
        if case .switched = state { return }
        if flow.isBlocked {
            if hasProgressed || timer.deadline == nil { timer.set(in: Limit.idle) }
        } else if case .answering = state, hasProgressed {
            timer.set(awaitsBody ? server.loop.now + Limit.idle : nil)
        }
    }

    var waitingBytes: Int { output.count }

    /// Ends the response, and reads the next request or closes the connection.
    func endResponse(keepsAlive: Bool) {
        switch state {
        case .answering, .switched: break
        case .identifying, .idle, .collecting, .ending, .tunnel, .closed: return
        }
        let isComplete = !isUploading
        upload?.close()
        upload = nil
        flow.expectsSwitch = false
        guard keepsAlive && isComplete else { return close() }
        state = .idle
        // In a call of its own, so that pipelined requests do not nest.
        server.loop.soon { [weak self] in self?.process() }
    }

    /// Closes the connection after all queued output is sent.
    func close() {
        switch state {
        case .idle, .collecting, .answering, .switched: state = .ending
        case .identifying: return end()
        case .ending, .tunnel, .closed: return
        }
        timer.set(in: Limit.idle)
        plan()
    }

    /// Closes the connection at once.
    func abandon() { end() }

    /// Closes the connection, because its front closes. A response that is complete is still sent.
    func leaveFront() { if case .ending = state { return } else { end() } }

    /// Relays bytes from now on, after the output queued so far.
    func openTunnel(to origin: Int32) {
        guard case .answering = state else {
            Glibc.close(origin)
            return
        }
        server.loop.forget(descriptor)
        watchword_keep_alive(descriptor)
        watchword_keep_alive(origin)
        var greeting = OutgoingBytes()
        swap(&greeting, &output)
        let tunnel = Tunnel(
            on: server.loop, server.buffer, program: descriptor, origin: origin, early: reader.takeRest(),
            greeting: greeting
        ) { [unowned self] in end() }
        state = .tunnel(tunnel)
        timer.set(in: Limit.programCheck)
        tunnel.start()
    }

    /// Passes on all further input as it is, to the origin's end of the upload.
    func switchProtocol() {
        guard case .answering = state, flow.expectsSwitch else { return }
        flow.expectsSwitch = false
        state = .switched
        timer.set(in: Limit.programCheck)
        upload?.write(reader.takeRest())
        if flow.hasInputEnded { upload?.finish() }
        watch()
    }

    /// Ends the connection when its time is over: a tunnel, or another protocol, once the program has closed its socket, because the
    /// kernel reports only the end of input.
    private func expire() {
        switch state {
        case .tunnel, .switched:
            guard server.isPeerOpen(descriptor) else { return end() }
            timer.set(in: Limit.programCheck)
        case .identifying, .idle, .collecting, .answering, .ending, .closed: end()
        }
    }

    private func end() {
        let before = state
        if case .closed = before { return }
        state = .closed
        if case .tunnel(let tunnel) = before { tunnel.stop() }
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
