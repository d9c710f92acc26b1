internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

extension EasyHandle {
    /// A handle with everything that libcurl would otherwise decide by itself, for all transfers to be made of.
    /// - Parameter caFile: certificates, in PEM, to be trusted in place of the system's.
    static func template(caFile: String?) throws(TransferFailure) -> EasyHandle {
        let easy = try make()
        do throws(TransferFailure) {
            try easy.restrict()
            try easy.secure(caFile: caFile)
            try easy.setCallbacks()
        } catch {
            easy.close()
            throw error
        }
        return easy
    }

    /// Everything that a request decides.
    func apply(_ request: TransferRequest, hasBody: Bool) throws(TransferFailure) {
        try request.checkCombination()
        if let proxy = request.proxy { try apply(proxy, for: request) }
        for handshake in request.handshakes { try apply(handshake) }
        try secure(request)
        try set(CURLOPT_URL, request.url.text)
        try set(CURLOPT_TIMEOUT_MS, max(1, request.timeout.wholeMilliseconds))
        // A client can have less time than everybody, and not more.
        if let limit = request.options.connectTimeout {
            try set(
                CURLOPT_CONNECTTIMEOUT_MS, min(max(1, limit.wholeMilliseconds), EngineLimits.connectMilliseconds))
        }
        try pace(request)
        if request.options.omittedHeaders.contains("user-agent") { try set(CURLOPT_USERAGENT, String?.none) }
        switch request.body {
        case .stream(let stream)? where hasBody: try setStreamedBody(size: stream.size)
        case .bytes(let bytes)? where hasBody: try setBody(bytes)
        case nil where hasBody: try setBody([])
        default: break
        }
        if request.method == "HEAD" {
            try set(CURLOPT_NOBODY, true)
        } else if request.method != "GET" || hasBody {
            try set(CURLOPT_CUSTOMREQUEST, request.method)
        }
    }

    /// The broker decides where a request goes, what it carries and what follows; libcurl carries it there.
    private func restrict() throws(TransferFailure) {
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        // An empty list is refused; nothing is followed anyway.
        try set(CURLOPT_REDIR_PROTOCOLS_STR, "https")
        try set(CURLOPT_FOLLOWLOCATION, false)
        try set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
        try set(CURLOPT_HTTPAUTH, 0)
        try set(CURLOPT_PROXYAUTH, 0)
        try set(CURLOPT_UNRESTRICTED_AUTH, false)
        try set(CURLOPT_GSSAPI_DELEGATION, Int(CURLGSSAPI_DELEGATION_NONE))
        try set(CURLOPT_DISALLOW_USERNAME_IN_URL, true)
        // The URL is canonical already, and Digest signs the request target byte for byte.
        try set(CURLOPT_PATH_AS_IS, true)
        try set(CURLOPT_NOSIGNAL, true)
        // A transfer that ends while its name is looked up does not wait for the thread that does so.
        try set(CURLOPT_QUICK_EXIT, true)
        try set(CURLOPT_TCP_NODELAY, true)
        try set(CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE))
        try set(CURLOPT_MAXLIFETIME_CONN, EngineLimits.connectionLifetime)
        try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        try set(CURLOPT_USERAGENT, "watchword")
        try set(CURLOPT_CONNECTTIMEOUT_MS, EngineLimits.connectMilliseconds)
        // Set even when there is none: else the environment's proxies count.
        try set(CURLOPT_PROXY, "")
        try set(CURLOPT_NOPROXY, "*")
    }

    /// How a body comes: in which coding, and how fast or slow.
    private func pace(_ request: TransferRequest) throws(TransferFailure) {
        if request.options.decompresses {
            try set(CURLOPT_ACCEPT_ENCODING, ResponseHeaders.codings.joined(separator: ", "))
        }
        // For a body that libcurl has: see `Pace`.
        if let limit = request.options.maxBytesPerSecond { try set(CURLOPT_MAX_SEND_SPEED_LARGE, offset: limit) }
        if request.options.decompresses {
            try set(CURLOPT_BUFFERSIZE, EngineLimits.compressedChunkBytes)
        } else if let limit = request.options.maxBytesPerSecond {
            try set(CURLOPT_BUFFERSIZE, min(max(limit / 16, EngineLimits.compressedChunkBytes), 16 << 10))
        } else if request.options.delivery == .fromHeader {
            try set(CURLOPT_BUFFERSIZE, EngineLimits.streamedChunkBytes)
        }
        guard let slow = request.slowest else { return }
        try set(CURLOPT_LOW_SPEED_LIMIT, slow.bytesPerSecond)
        try set(CURLOPT_LOW_SPEED_TIME, slow.seconds)
    }

    private func secure(caFile: String?) throws(TransferFailure) {
        for option in [CURLOPT_SSLVERSION, CURLOPT_PROXY_SSLVERSION] { try set(option, Int(CURL_SSLVERSION_TLSv1_2)) }
        for option in [CURLOPT_SSL_VERIFYPEER, CURLOPT_PROXY_SSL_VERIFYPEER] { try set(option, true) }
        // `TLSRecord` checks the names: libcurl's own check comes later, and cannot be answered.
        for option in [CURLOPT_SSL_VERIFYHOST, CURLOPT_PROXY_SSL_VERIFYHOST] { try set(option, 0) }
        // See `TLSRecord.isProxys`.
        try set(CURLOPT_PROXY_SSL_OPTIONS, Int(CURLSSLOPT_ALLOW_BEAST))
        if let caFile {
            for option in [CURLOPT_CAINFO, CURLOPT_PROXY_CAINFO] { try set(option, caFile) }
            for option in [CURLOPT_CAPATH, CURLOPT_PROXY_CAPATH] { try set(option, String?.none) }
        }
    }

    /// Which connections it may use, and leave for others.
    private func secure(_ request: TransferRequest) throws(TransferFailure) {
        // A login of the connection is a login of all streams on it.
        let isLogin = !request.handshakes.isEmpty
        // And a body that waits for its reader would hold up the others on its connection: libcurl reads on for all streams of
        // one, and keeps megabytes for the one that waits.
        let isAlone = isLogin || request.options.delivery == .fromHeader || request.options.maxBytesPerSecond != nil
        if isAlone { try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)) }
        // A resumed session shows no certificate.
        if request.identity != .none || request.trust == .ask { try set(CURLOPT_SSL_SESSIONID_CACHE, false) }
        if request.trust == .ask { try set(CURLOPT_FORBID_REUSE, true) }
        if request.trust == .ask || request.needsNewConnection { try set(CURLOPT_FRESH_CONNECT, true) }
    }
}

extension TransferRequest {
    var handshakes: [Handshake] { [handshake, proxyHandshake].compactMap { $0 } }

    /// libcurl keeps a password together with the connections of this request.
    var leavesPassword: Bool { handshakes.contains { $0.scheme == .ntlm } || proxy?.password != nil }

    /// What would mark connections that others use, or log in twice, is a mistake of the caller's.
    func checkCombination() throws(TransferFailure) {
        let marksConnections =
            trust.isException || clientCertificate != nil || !handshakes.isEmpty || refusesCertificateRequest
        guard identity != .none || !marksConnections else {
            throw TransferFailure(.internalError, "What marks a connection needs an identity.")
        }
        let isClear = handshakes.allSatisfy { handshake in
            switch handshake.target {
            case .origin: authorization == nil && headers.firstValue(of: "Authorization") == nil
            case .proxy: proxy.map { $0.kind != .socks5h && $0.authorization == nil } ?? false
            }
        }
        let isOneEach = proxyHandshake.map { $0.target == .proxy && handshake?.target != .proxy } ?? true
        guard isClear && isOneEach else {
            throw TransferFailure(.internalError, "A handshake is the only login of its target.")
        }
    }
}

extension TrustPolicy {
    /// It accepts what others must not meet with.
    var isException: Bool {
        switch self {
        case .leaf: true
        case .verify, .ask: false
        }
    }
}
