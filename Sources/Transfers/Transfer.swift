internal import CCurl
internal import COpenSSL
internal import EventLoop
internal import WatchwordCore
internal import WatchwordProtocol

/// One exchange under way: its handle, and what libcurl's callbacks have recorded. Lives on the engine's loop.
final class Transfer {
    typealias Completion = @Sendable (TransferPort.Outcome) -> Void

    let id: TransferID
    let request: TransferRequest
    let start = ContinuousClock.now
    let easy: EasyHandle
    /// Whose connections it uses; `nil` before it is begun.
    var pool: ConnectionPool?
    private var lines: HeaderLines
    private var proxyLines = HeaderLines()
    let errorText: UnsafeMutablePointer<CChar>
    /// Called exactly once.
    let completion: Completion

    /// Of the request's body, when that comes through a socket.
    let source: BodySource?
    let certificate: LoadedCertificate?
    /// At the origin.
    let login: NegotiateLogin?
    /// Of the connection to the origin, when it is a protected one.
    private(set) var originTLS: TLSRecord?
    /// See `TransferResponse.serverEndPoint`.
    private(set) var serverEndPoint: [UInt8]?
    /// The certificate of a connection that the login is not for.
    private(set) var changedChannel: [UInt8]??
    private(set) var proxyTLS: TLSRecord?

    private(set) var headers = ResponseHeaders()
    private(set) var ntlm: NTLMWatch
    private(set) var gate: ConnectionGate
    /// How much libcurl has read of the body of a refused CONNECT, at least.
    private var refusalBytes = 0
    private(set) var body: [UInt8] = []
    /// What `body` has of the account of its client.
    private(set) var share: Allowance.Share?
    private(set) var bodyBytes = 0
    /// Where the body goes once it has been handed over on its way.
    private(set) var flow: BodyFlow?
    /// Of a response that has to be handed over complete, when the body is not a small one.
    private(set) var store: BodyStore?
    /// `completion` has been called; the rest is the flow's.
    var isHandedOver = false
    /// Told when that is the case.
    private let handOver: HandOverList
    /// Of the response's body, and of the request's where that comes through a socket.
    private var pace: (down: Pace, up: Pace)?
    /// It is no sooner to be resumed, which is then due.
    var pausedUntil: ContinuousClock.Instant?
    var resuming: LoopTimer?
    /// What the response has to prove at its end.
    let proofs: [ProofCheck]
    /// Why a callback has stopped the transfer.
    private(set) var stopped: TransferFailure.Kind?

    init(
        id: TransferID, _ request: TransferRequest, _ prepared: Prepared, source: BodySource?,
        template: EasyHandle, handOver: HandOverList, completion: @escaping Completion
    ) throws(TransferFailure) {
        let hasBody = request.sendsBody
        if let source, !source.rewind() {
            let text = "The request's body is gone: it was sent before, and nothing was kept."
            throw TransferFailure(.internalError, text)
        }
        self.source = source
        certificate = prepared.certificate
        login = prepared.login
        var lines = try HeaderLines(request, hasBody: hasBody, login: login?.authorization)
        let easy: EasyHandle
        do throws(TransferFailure) { easy = try template.duplicate() } catch {
            lines.free()
            throw error
        }
        self.id = id
        self.request = request
        proofs = request.proofs.map { $0.makeCheck() }
        ntlm = NTLMWatch(request)
        gate = ConnectionGate(request.deniedAddresses)
        self.easy = easy
        self.lines = lines
        self.completion = completion
        self.handOver = handOver
        share = request.allowance.map { Allowance.Share(of: $0) }
        if let limit = request.options.maxBytesPerSecond {
            let pace = Pace(bytesPerSecond: limit, now: start)
            self.pace = (pace, pace)
        }
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        do throws(TransferFailure) {
            try easy.apply(request, hasBody: hasBody)
            try easy.set(CURLOPT_HTTPHEADER, lines)
            proxyLines = try HeaderLines(request.proxy, login: prepared.proxyLogin?.authorization)
            try easy.set(CURLOPT_PROXYHEADER, proxyLines)
            try easy.set(CURLOPT_ERRORBUFFER, pointer: errorText)
            try takeCallbacks()
        } catch {
            close()
            throw error
        }
    }

    /// Gives everything back that libcurl was lent. The handle must not be in a multi handle any more.
    func close() {
        easy.close()
        lines.free()
        proxyLines.free()
        errorText.deallocate()
    }

    // MARK: From libcurl's callbacks: they record, and nothing else

    /// The next bytes of the request's body.
    func give(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        if waits(pace?.up) { return watchword_curl_pause_reading }
        switch source?.read(into: buffer) {
        case .bytes(let count):
            pace?.up.note(count, at: .now)
            return count
        case .wait: return watchword_curl_pause_reading
        case .end, nil: return 0
        case .broken:
            stopped = .requestBodyIncomplete
            return watchword_curl_abort_reading
        }
    }

    private func waits(_ pace: Pace?) -> Bool {
        guard let end = pace?.pause(at: .now) else { return false }
        pausedUntil = min(pausedUntil ?? end, end)
        return true
    }

    /// libcurl sends the body from its start again: after the rounds of a handshake.
    func rewind() -> Bool { source?.rewind() ?? false }

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
        if let flow, flow.outcome != nil { return .stop }
        if waits(pace?.down) { return .none }
        guard bodyBytes + bytes.count <= largestBody else {
            stopped = .bodyTooLarge
            return .stop
        }
        if flow == nil && store == nil { changePlace(for: bytes.count) }
        if let flow {
            guard flow.append(bytes) else { return .none }
        } else if let store {
            guard store.append(bytes) else {
                stopped = store.shortage != nil ? .quotaExceeded : .outOfMemory
                return .stop
            }
        } else {
            body.append(contentsOf: bytes)
            share?.grow(by: bytes.count)
        }
        for proof in proofs { proof.update(bytes) }
        bodyBytes += bytes.count
        pace?.down.note(bytes.count, at: .now)
        return .all
    }

    /// The body of a challenge or a redirect is not the one that was asked for.
    var largestBody: Int {
        if flow != nil || isFinal { return request.options.maxBodyBytes }
        let isInBetween = [401, 407].contains(headers.status) || (300...399).contains(headers.status)
        return isInBetween
            ? EngineLimits.wholeBodyBytes : min(request.options.maxBodyBytes, EngineLimits.wholeBodyBytes)
    }

    /// What is too large for memory is handed over on its way, or kept elsewhere.
    private func changePlace(for count: Int) {
        let limit: Int
        switch request.options.delivery {
        case .whole: return
        case .beyond(let bytes): limit = isFinal ? bytes : max(bytes, EngineLimits.bodyBufferBytes)
        case .fromHeader: limit = EngineLimits.bodyBufferBytes
        }
        let hasRoom = request.allowance?.hasRoom(for: count) ?? true
        guard body.count + count > limit || !hasRoom else { return }
        if isFinal { return startFlow() }
        store = BodyStore(start: body, inMemory: hasRoom, disk: request.disk)
        dropBody()
    }

    private func dropBody() {
        body = []
        share = request.allowance.map { Allowance.Share(of: $0) }
    }

    /// Nothing that asks for a log-in or leads elsewhere, or that refuses the announcement of a body: after that libcurl sends the
    /// request again without it.
    private var isFinal: Bool {
        guard request.options.delivery != .whole, headers.isComplete, headers.status >= 200 else { return false }
        let isOrigins = !request.isTunnelled || originTLS != nil
        return isOrigins && ![401, 407].contains(headers.status) && !(300...399).contains(headers.status)
            && !(headers.status == 417 && request.announcesBody)
    }

    /// The origin, or a proxy in its place, changes to another protocol (RFC 9110 section 15.2.2), which no request asks for. What
    /// follows is not HTTP, and the connection is of no use any more.
    var isUnrequestedSwitch: Bool { headers.status == 101 && (!request.isTunnelled || originTLS != nil) }

    /// Why the header section of the origin, which is complete, is not believed.
    var framingProblem: String? {
        guard headers.isComplete, headers.status >= 200, !request.isTunnelled || originTLS != nil else { return nil }
        return headers.problem
    }

    /// RFC 9110 section 6.4.1.
    private var hasBody: Bool {
        headers.isComplete && headers.status >= 200 && ![204, 304].contains(headers.status) && request.method != "HEAD"
    }

    /// The server has answered in a way that makes libcurl send no more of the body.
    var isRefused: Bool { headers.isComplete && headers.status >= 300 }

    private func startFlow() {
        flow = BodyFlow(start: body)
        dropBody()
        handOver.transfers.append(self)
    }

    /// Asked for every byte that libcurl reads of the body of a refused CONNECT.
    func goesOn() -> Bool {
        guard headers.isComplete, originTLS == nil else { return true }
        refusalBytes += 1
        return refusalBytes <= EngineLimits.refusedTunnelBodyBytes
    }

    /// Makes the context of a new connection record, and show what it has to show.
    func prepare(_ context: OpaquePointer) -> Bool {
        if let proxy = request.proxy, proxy.kind == .https, TLSRecord.isProxys(context) {
            let record = TLSRecord(.proxy, host: proxy.host, policy: .verify)
            proxyTLS = record
            return record.attach(to: context)
        }
        let record = TLSRecord(
            .origin, host: request.url.origin.host.string, policy: request.trust,
            refusesRequest: request.refusesCertificateRequest && certificate == nil)
        originTLS = record
        // The tunnel stands: what comes from now on is the origin's.
        headers = ResponseHeaders()
        return record.attach(to: context) && certificate.map { $0.use(in: context) } ?? true
    }

    func mayConnect(to address: UnsafePointer<curl_sockaddr>) -> Bool {
        gate.admit(NetworkAddress(address), port: Int(watchword_curl_port(address))) && ntlm.connect()
    }

    func maySend(to address: UnsafePointer<CChar>?, port: Int32) -> Bool {
        guard gate.admit(address.flatMap { NetworkAddress(String(cString: $0)) }, port: Int(port)) else { return false }
        guard let bound = request.boundEndPoint else { return true }
        let shown = ServerEndPoint.hash(on: easy)
        if shown != bound { changedChannel = .some(shown) }
        return shown == bound
    }

    func record(header line: UnsafeRawBufferPointer) -> Bool {
        refusalBytes = 0
        guard headers.append(line) else {
            stopped = .headersTooLarge
            return false
        }
        guard ntlm.receive(line, of: headers) else { return false }
        // A connection that was there before has its record from then.
        if originTLS == nil, request.url.origin.scheme == .https,
            let connection = watchword_curl_easy_get_ssl(easy.pointer),
            let record = TLSRecord.of(OpaquePointer(connection)), record.peer == .origin
        {
            originTLS = record
        }
        if headers.isComplete, headers.status == 401 { serverEndPoint = ServerEndPoint.hash(on: easy) }
        guard !isUnrequestedSwitch, framingProblem == nil else {
            stopped = .malformedResponse
            return false
        }
        if request.options.decompresses, hasBody, !headers.isModestlyCoded {
            stopped = .malformedResponse
            return false
        }
        if request.options.delivery == .fromHeader, flow == nil, isFinal { startFlow() }
        return true
    }
}

/// The transfers whose response is to be handed over: filled by callbacks, which do nothing else.
final class HandOverList {
    var transfers: [Transfer] = []
}

extension TransferRequest {
    /// A body that is handed over on its way must not stand still for ever.
    var slowest: LowSpeed? {
        if let limit = options.lowSpeed { return limit }
        return options.delivery == .fromHeader ? LowSpeed(bytesPerSecond: 1, seconds: EngineLimits.stallSeconds) : nil
    }

    /// RFC 9110 section 9.2.1.
    var isSafe: Bool { ["GET", "HEAD", "OPTIONS", "TRACE"].contains(method) }
}

extension EasyHandle {
    var httpVersion: String {
        switch number(CURLINFO_HTTP_VERSION) {
        case Int(CURL_HTTP_VERSION_1_0): "1.0"
        case Int(CURL_HTTP_VERSION_2_0): "2"
        default: "1.1"
        }
    }
}
