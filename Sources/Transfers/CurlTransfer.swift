internal import CCurl
internal import EventLoop
internal import WatchwordCore
internal import WatchwordProtocol

/// One libcurl transfer: its handle, and the state that the callbacks record. Used on the engine's loop only.
final class CurlTransfer {
    let job: TransferJob
    private(set) var handle: RequestHandle
    /// The pool whose connections the transfer uses; `nil` before the transfer starts.
    var pool: ConnectionPool?
    /// The request's body, if the client sends it through a socket.
    let source: BodySource?
    private(set) var connections: ConnectionRecord
    private(set) var head: ResponseHead
    var body: ResponseBody
    var timing: TransferTiming
    private var decoder: BodyDecoder?
    private let login: NegotiateLogin?
    private var hasLeftConnection = false
    private var hasDroppedExpectation = false
    /// The size of the header sections up to the end of an interim response to CONNECT, until the next status line was read.
    private var interimBytes: Int?
    private var use = ConnectionUse.none
    /// Why a callback stopped the transfer.
    private(set) var stopped: TransferFailure.Kind?
    /// Delivers a response whose body is awaited, after a while; see `TransferOptions.awaitsBody`.
    var waiting: LoopTimer?
    /// The bytes of requests that were sent before the last header section.
    private var answeredBytes = 0
    /// The bytes that libcurl has received since the last header section.
    private var receivedBytes = 0
    /// The bytes of requests that opened a tunnel to a TLS server.
    private var tunnelBytes = 0
    /// Receives this transfer when its response is ready for delivery.
    private let readyResponses: ReadyResponses

    init(
        _ job: TransferJob, _ prepared: Prepared, source: BodySource?, template: EasyHandle,
        readyResponses: ReadyResponses
    ) throws(TransferFailure) {
        if let source, !source.rewind() {
            let text = "cannot send the request's body again: it was not copied"
            throw TransferFailure(.internalError, text)
        }
        (self.job, self.source, self.readyResponses, login) = (job, source, readyResponses, prepared.login)
        handle = try RequestHandle(job.request, prepared, from: template)
        connections = ConnectionRecord(job.request, prepared.certificate)
        head = ResponseHead(job.request)
        body = ResponseBody(job, prepared.login)
        timing = TransferTiming(job.request)
        do throws(TransferFailure) { try takeCallbacks() } catch {
            close()
            throw error
        }
    }

    var id: TransferID { job.id }
    var request: SharedRequest { job.request }
    var easy: EasyHandle { handle.easy }
    var headers: ResponseHeaders { head.headers }

    /// Frees the handle and its memory. The handle must have been removed from its multi handle.
    func close() { handle.close() }

    // MARK: Called from libcurl's callbacks, which only record

    /// Supplies the next bytes of the request's body.
    func supply(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        if head.hasNotSwitched, isAnswered { return 0 }
        if timing.pausesUpload() { return watchword_curl_pause_reading }
        switch source?.read(into: buffer) {
        case .bytes(let count):
            timing.recordUpload(count)
            return count
        case .wait: return watchword_curl_pause_reading
        case .end, nil: return 0
        case .broken:
            stopped = .requestBodyIncomplete
            return watchword_curl_abort_reading
        }
    }

    /// Whether the last header section answers the last request: in a login by NTLM, libcurl sends several.
    private var isAnswered: Bool { easy.number(CURLINFO_REQUEST_SIZE) == answeredBytes }

    /// Whether a part of the request, or of an unanswered request for a tunnel, may have been sent.
    var hasSentRequest: Bool { easy.number(CURLINFO_REQUEST_SIZE) > tunnelBytes }

    /// Whether the response to the last request makes libcurl stop sending its body.
    var isRefused: Bool { head.isRefusal && isAnswered }

    /// Lets libcurl send the body again from its start, in the next round of a connection-level login.
    func rewind() -> Bool { source?.rewind() ?? false }

    /// The result of recording received bytes: all were taken, none was (libcurl pauses), or the transfer stops.
    enum Recorded {
        case all, none, stop

        func result(_ count: Int) -> Int {
            switch self {
            case .all: count
            case .none: watchword_curl_pause_writing
            case .stop: 0
            }
        }
    }

    func record(body bytes: UnsafeRawBufferPointer) -> Recorded {
        let recorded = decode(bytes)
        // A proof covers the body with its content coding (RFC 7616 section 3.4.3).
        if recorded == .all { body.proofs.update(bytes) }
        return recorded
    }

    private func decode(_ bytes: UnsafeRawBufferPointer) -> Recorded {
        guard job.request.options.decompresses, let coding = head.headers.coding else { return store(bytes) }
        let decoder = self.decoder ?? BodyDecoder(coding)
        self.decoder = decoder
        let recorded = decoder.decode(bytes) { store($0) }
        guard recorded == .all, decoder.isBroken, !isBodyUnneeded else { return recorded }
        stopped = .malformedResponse
        return .stop
    }

    /// Whether a problem of the body does not matter, because the response may lead to another request.
    private var isBodyUnneeded: Bool { head.isIntermediate && body.flow == nil }

    /// Whether the body could not be decoded, or has ended too early for that.
    var isUndecodable: Bool { decoder.map { !$0.isComplete } ?? !hasSafeContentCoding }

    private func store(_ bytes: UnsafeRawBufferPointer) -> Recorded {
        if let flow = body.flow, flow.outcome != nil { return .stop }
        if timing.pausesDownload() { return .none }
        guard body.count + bytes.count <= largestBody else {
            stopped = .bodyTooLarge
            return .stop
        }
        if body.isInMemory { moveBody(for: bytes.count) }
        // Must not be in a mutating method of `body`: a reader that is notified may access this transfer.
        if let flow = body.flow {
            guard flow.append(bytes) else { return .none }
        } else if let store = body.store {
            guard store.append(bytes) else {
                stopped = store.shortage != nil ? .quotaExceeded : .outOfMemory
                return .stop
            }
        } else {
            body.append(bytes)
        }
        body.count += bytes.count
        timing.recordDownload(bytes.count)
        return .all
    }

    /// The limit for the body, in bytes; challenges and redirects have a separate limit.
    var largestBody: Int {
        if body.flow != nil || head.isFinal(for: job.request) { return job.request.options.maxBodyBytes }
        return head.isInBetween
            ? EngineLimits.wholeBodyBytes : min(job.request.options.maxBodyBytes, EngineLimits.wholeBodyBytes)
    }

    /// Moves a body that is too large for memory to a flow or a store.
    private func moveBody(for count: Int) {
        let isFinal = head.isFinal(for: job.request)
        guard let limit = ResponseBody.limit(for: job.request.options.delivery, isFinal: isFinal) else { return }
        let hasRoom = job.quotas.memory?.hasRoom(for: count) ?? true
        guard body.bytes.count + count > limit || !hasRoom else { return }
        if isFinal { startFlow() } else { body.startStore(job.quotas, inMemory: hasRoom) }
    }

    /// Starts to deliver the body while it is received.
    func startFlow() {
        waiting?.cancel()
        body.startFlow(job.quotas.memory)
        readyResponses.transfers.append(self)
    }

    /// Whether libcurl may continue to read. Called for every byte of the response to CONNECT.
    func continues() -> Bool {
        if let bytes = interimBytes { readTunnelStatus(after: bytes) }
        return head.passesRefusalByte()
    }

    /// Whether a line of an interim response to CONNECT must be hidden from libcurl, which takes the end and the fields of that
    /// response for those of the final one.
    func hidesLine() -> Bool {
        guard head.isInterimOfTunnel, !headers.isAtStart, interimBytes == nil else { return false }
        guard headers.isComplete else { return true }
        interimBytes = 0
        // libcurl takes a second status line for an invalid field, unless it does not pass it on.
        return (try? easy.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, true)) != nil
    }

    /// Lets libcurl pass on the fields of a response to CONNECT once it has read the status line behind an interim response.
    private func readTunnelStatus(after bytes: Int) {
        let received = easy.number(CURLINFO_HEADER_SIZE)
        guard bytes > 0, received > bytes else {
            interimBytes = received
            return
        }
        interimBytes = nil
        head.beginTunnelResponse(status: easy.connectStatus)
        try? easy.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, false)
    }

    /// Prepares the OpenSSL context of a new connection.
    func prepare(_ context: OpaquePointer) -> Bool {
        let isProxyContext = job.request.proxy?.kind == .https && TLSRecord.isProxyContext(context)
        if !isProxyContext {
            if request.usesTunnel {
                report(.opensTunnel)
                tunnelBytes = easy.number(CURLINFO_REQUEST_SIZE)
            }
            head.beginOrigin()
        }
        return connections.attach(context, to: isProxyContext ? .proxy : .origin, job.request)
    }

    func mayConnect(to address: UnsafePointer<curl_sockaddr>) -> Bool {
        // guard: needs-new-login
        if request.options.needsOldConnection || use == .kept(hasLogin: true) {
            stopped = .connectionLost
            return false
        }
        // guard: address-after-resolution
        return connections.admit(NetworkAddress(address), port: Int(watchword_curl_port(address))) && head.mayConnect()
    }

    func record(socket: Int32) { connections.open(socket) }

    func maySend(to address: UnsafePointer<CChar>?, port: Int32, from own: UnsafePointer<CChar>?, _ ownPort: Int32)
        -> Bool
    {
        listen(false)
        let isAdmitted =
            connections.gate.isOpen
            || connections.admit(address.flatMap { NetworkAddress(String(cString: $0)) }, port: Int(port))
        guard isAdmitted, let pool,
            connections.isQuiet(ConnectionEnds(peer: address, port, own: own, ownPort), easy, pool.connections),
            connections.isBound(easy, to: request.boundEndPoint)
        else { return false }
        // libcurl repeats the request on another kept connection, which may have ended as well, and gives up after five.
        if case .kept(let hasLogin) = use, headers.status == 0 {
            use = .ended(hadLogin: hasLogin)
            if hasLogin { stopped = .connectionLost }
            return false
        }
        let isLoggedIn = request.usesTunnel || !request.handshakes.isEmpty
        if easy.number(CURLINFO_NUM_CONNECTS) == 0 {
            use = .kept(hasLogin: isLoggedIn && request.value.identity != .none)
            if isLoggedIn { report(.reusesConnection) }
        } else {
            use = .new
            if request.usesTunnel, request.url.origin.scheme == .http { report(.opensTunnel) }
        }
        return true
    }

    /// Whether the connection leads through the proxy to the server.
    var hasTunnel: Bool { use != .none || connections.origin != nil }

    /// Whether the connection that had logged in has ended, so that the request would log in again: that is another attempt.
    var hasLostLogin: Bool { use == .kept(hasLogin: true) || use == .ended(hadLogin: true) }

    private func report(_ event: TransferEvent) { readyResponses.events.append((self, event)) }

    /// Whether the transfer has to start again on a new connection. Nothing of its request was sent on the old one, which libcurl
    /// has closed.
    private func needsAnotherConnection(after code: CURLcode) -> Bool {
        code == CURLE_ABORTED_BY_CALLBACK && !hasLeftConnection
            && (connections.hasStrayInput || use == .ended(hadLogin: false))
    }

    /// Whether the server refuses to be asked before the body is sent (RFC 9110 section 10.1.1), and has closed the connection.
    private var hasRefusedExpectation: Bool {
        head.refusedExpectations == 1 && headers.status == 417 && job.request.announcesBody && !hasDroppedExpectation
            && !job.request.options.omittedHeaders.contains("expect")
    }

    func needsAnotherStart(after code: CURLcode) -> Bool {
        needsAnotherConnection(after: code) || hasRefusedExpectation
    }

    /// Prepares the transfer to start again.
    func startAgain() throws(TransferFailure) {
        if hasRefusedExpectation {
            hasDroppedExpectation = true
            try handle.dropExpectation()
        } else {
            hasLeftConnection = true
        }
        guard source?.rewind() ?? true else {
            throw TransferFailure(.requestBodyGone, "cannot send the request's body again: it was not copied")
        }
        head = ResponseHead(job.request)
        connections = ConnectionRecord(job.request, connections.certificate)
        body = ResponseBody(job, login)
        (decoder, stopped, tunnelBytes, use) = (nil, nil, 0, .none)
        try easy.set(CURLOPT_FRESH_CONNECT, true)
        try easy.set(CURLOPT_TIMEOUT_MS, max(1, (request.timeout - timing.elapsed()).wholeMilliseconds))
    }

    func record(header line: UnsafeRawBufferPointer) -> Bool {
        let appended = head.append(line)
        if case .tooLarge = appended { stopped = .headersTooLarge }
        guard appended == .field || appended == .edge else { return false }
        if job.request.url.origin.scheme == .https, connections.origin == nil {
            connections.findOrigin(on: easy)
            if connections.origin != nil { head.recordOrigin() }
        }
        // Only the status line and the end of the section decide something.
        guard appended == .edge else { return true }
        if head.headers.isComplete {
            answeredBytes = easy.number(CURLINFO_REQUEST_SIZE)
            listen(headers.status >= 200 && head.isFinalPeer)
            if head.headers.status == 401 { connections.recordEndPoint(on: easy) }
            if use == .kept(hasLogin: true), asksForLogin {
                stopped = .connectionLost
                return false
            }
        }
        guard !head.isUnrequestedSwitch, head.framingProblem == nil, hasSafeContentCoding || isBodyUnneeded else {
            stopped = .malformedResponse
            return false
        }
        if head.headers.isComplete, head.isInBetween, isWaitLimited { readyResponses.intermediate.append(self) }
        if let interim = head.interim { report(.interim(interim)) }
        if job.request.options.delivery == .fromHeader, body.flow == nil, head.isFinal(for: job.request) {
            if job.request.options.awaitsBody, !head.isSwitch { readyResponses.begun.append(self) } else { startFlow() }
        }
        return true
    }

    /// Whether libcurl would log in by NTLM now.
    private var asksForLogin: Bool {
        request.handshakes.contains { $0.scheme == .ntlm && headers.status == ($0.target == .origin ? 401 : 407) }
    }

    /// Makes libcurl report what it does, from the end of a response's header section to the next request. Before that it would
    /// report credentials.
    private func listen(_ isListening: Bool) {
        receivedBytes = 0
        try? easy.set(CURLOPT_VERBOSE, isListening)
    }

    /// Gives the connection up if libcurl drops bytes behind the end of a response, which would belong to no request.
    func hear(_ kind: curl_infotype, _ bytes: UnsafeRawBufferPointer) {
        switch kind {
        case CURLINFO_DATA_IN:
            // In a login, libcurl drops them without a report.
            receivedBytes += bytes.count
            let length = easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
            guard length >= 0, receivedBytes > length else { return }
        case CURLINFO_TEXT:
            let isExcess = ["Excess found", "Leftovers after chunking"].contains { bytes.starts(with: $0.utf8) }
            guard isExcess else { return }
        default: return
        }
        pool.map { connections.giveUp(in: $0.connections) }  // guard: input-behind-the-response
    }

    /// Whether the whole body is worth waiting for, if some of it has been received.
    var isSmall: Bool { announcedBytes ?? .max <= EngineLimits.awaitedBodyBytes }

    /// Called when libcurl does not wait for input any more. After 101 that is the end of the server's side, for which libcurl
    /// does not end the transfer before the program has ended its own.
    func readsNoMore() {
        guard head.isSwitch, body.flow?.isPaused != true, timing.pausedUntil == nil else { return }
        readyResponses.ended.append(self)
    }

    /// Whether the body of a challenge or a redirect is waited for only for a while. Then it is delivered while it is received, or
    /// dropped if the response is that of a proxy to CONNECT.
    private var isWaitLimited: Bool {
        let isStreamable = job.request.options.delivery != .whole || !head.isFinalPeer
        return isStreamable && !job.request.handshakes.contains { $0.scheme == .ntlm }
    }

    /// Delivers a challenge or a redirect whose body is slow.
    /// - Returns: whether the body will be delivered as it is received.
    func deliverHead() -> Bool {
        guard head.isIntermediate, body.isInMemory, decoder?.isBroken != true else { return false }
        startFlow()
        return true
    }

    private var hasSafeContentCoding: Bool {
        !job.request.options.decompresses || !head.hasBody(for: job.request.method) || head.headers.hasSafeContentCoding
    }
}
