internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

extension EasyHandle {
    /// Returns a handle with the options that all transfers share; each transfer uses a duplicate of it.
    /// - Parameter caFile: a PEM file of the certificates to trust in place of the system's.
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

    /// Sets the options that depend on the request.
    func apply(_ request: SharedRequest, hasBody: Bool) throws(TransferFailure) {
        try request.checkCombination()
        if let proxy = request.proxy { try apply(proxy, for: request) }
        for handshake in request.handshakes { try apply(handshake) }
        try secure(request)
        if request.options.opensTunnel {
            try openTunnel(request)
        } else {
            try set(CURLOPT_URL, request.url.text)
            // libcurl would send some targets in another form, but Digest signs them byte for byte.
            try set(CURLOPT_REQUEST_TARGET, request.target)
        }
        try set(CURLOPT_TIMEOUT_MS, max(1, request.timeout.wholeMilliseconds))
        // A client can shorten the default timeout, but not extend it.
        if let limit = request.options.connectTimeout {
            try set(
                CURLOPT_CONNECTTIMEOUT_MS, min(max(1, limit.wholeMilliseconds), EngineLimits.connectMilliseconds))
        }
        try pace(request)
        try setCookies(of: request)
        if request.options.omittedHeaders.contains("user-agent") { try set(CURLOPT_USERAGENT, String?.none) }
        if hasBody {
            switch request.body {
            case .stream(let stream)?:
                let isSmall = request.options.switchesProtocol
                try setStreamedBody(
                    size: stream.size,
                    bufferBytes: isSmall ? EngineLimits.frontChunkBytes : EngineLimits.streamedChunkBytes)
            case .bytes(let bytes)?: try setBody(bytes)
            case nil: try setBody([])
            }
        }
        if request.method == "HEAD" {
            try set(CURLOPT_NOBODY, true)
        } else if request.method != "GET" || hasBody {
            try set(CURLOPT_CUSTOMREQUEST, request.method)
        }
    }

    /// Starts libcurl's cookie engine for this request, without a file. It knows the fetch's cookies, and joins those that match
    /// with those of the client.
    private func setCookies(of request: SharedRequest) throws(TransferFailure) {
        guard request.usesCookies else { return }
        try set(CURLOPT_COOKIEFILE, "")
        guard !request.cookies.isEmpty else { return }
        let given = request.headers.values(of: "Cookie").joined(separator: "; ")
        // Beyond its limit for the field, libcurl would leave out the client's own cookies.
        var room = EngineLimits.cookieFieldBytes - given.headerByteCount
        for cookie in request.cookies where cookie.count <= room {
            room -= cookie.count
            try set(CURLOPT_COOKIELIST, cookie)
        }
        if !given.isEmpty { try set(CURLOPT_COOKIE, Secret(joining: [.header(given)])) }
    }

    /// Makes libcurl only connect, through CONNECT if there is an HTTP proxy. The URL has the scheme http, because with https
    /// libcurl would make a TLS connection through the tunnel.
    private func openTunnel(_ request: SharedRequest) throws(TransferFailure) {
        try set(CURLOPT_URL, "http://\(request.url.origin.host):\(request.url.origin.port)/")
        try set(CURLOPT_CONNECT_ONLY, true)
        try set(CURLOPT_HTTPPROXYTUNNEL, true)
        // libcurl reuses no connection that was only connected. CURLOPT_FORBID_REUSE would close it at once.
        try set(CURLOPT_FRESH_CONNECT, true)
    }

    /// Turns off everything that libcurl would decide by itself: the broker handles redirects, netrc, logins and proxies.
    private func restrict() throws(TransferFailure) {
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        // libcurl rejects an empty list; redirects are not followed anyway.
        try set(CURLOPT_REDIR_PROTOCOLS_STR, "https")
        try set(CURLOPT_FOLLOWLOCATION, false)  // guard: libcurl-follows
        try set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
        try set(CURLOPT_HTTPAUTH, 0)
        try set(CURLOPT_PROXYAUTH, 0)
        try set(CURLOPT_UNRESTRICTED_AUTH, false)
        try set(CURLOPT_GSSAPI_DELEGATION, Int(CURLGSSAPI_DELEGATION_NONE))
        try set(CURLOPT_DISALLOW_USERNAME_IN_URL, true)
        try set(CURLOPT_PATH_AS_IS, true)
        try set(CURLOPT_NOSIGNAL, true)
        // A transfer that ends during a name lookup does not wait for the resolver thread.
        try set(CURLOPT_QUICK_EXIT, true)
        try set(CURLOPT_TCP_NODELAY, true)
        try set(CURLOPT_HEADEROPT, Int(CURLHEADER_SEPARATE))
        try set(CURLOPT_MAXLIFETIME_CONN, EngineLimits.connectionLifetime)
        try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        try set(CURLOPT_USERAGENT, "watchword")
        try set(CURLOPT_CONNECTTIMEOUT_MS, EngineLimits.connectMilliseconds)
        // Set even without a proxy: otherwise libcurl uses the proxies of the environment.
        try set(CURLOPT_PROXY, "")
        try set(CURLOPT_NOPROXY, "*")
    }

    /// Sets the speed limits and the size of the receive buffer.
    private func pace(_ request: SharedRequest) throws(TransferFailure) {
        // This limits a request body that is passed to libcurl as a whole; `RateLimiter` limits the others.
        if let limit = request.options.maxBytesPerSecond { try set(CURLOPT_MAX_SEND_SPEED_LARGE, offset: limit) }
        if let limit = request.options.maxBytesPerSecond {
            try set(CURLOPT_BUFFERSIZE, min(max(limit / 16, EngineLimits.pacedChunkBytes), 16 << 10))
        } else if request.options.delivery == .fromHeader {
            // Most responses through a front are small, and clearing a large buffer takes longer than they do.
            let isSmall = request.options.awaitsBody
            try set(CURLOPT_BUFFERSIZE, isSmall ? EngineLimits.frontChunkBytes : EngineLimits.streamedChunkBytes)
        }
        guard let slow = request.slowest else { return }
        try set(CURLOPT_LOW_SPEED_LIMIT, slow.bytesPerSecond)
        try set(CURLOPT_LOW_SPEED_TIME, slow.seconds)
    }

    private func secure(caFile: String?) throws(TransferFailure) {
        for option in [CURLOPT_SSLVERSION, CURLOPT_PROXY_SSLVERSION] { try set(option, Int(CURL_SSLVERSION_TLSv1_2)) }
        for option in [CURLOPT_SSL_VERIFYPEER, CURLOPT_PROXY_SSL_VERIFYPEER] { try set(option, true) }
        // `TLSRecord` checks the names: libcurl's own check comes later and cannot be overridden.
        for option in [CURLOPT_SSL_VERIFYHOST, CURLOPT_PROXY_SSL_VERIFYHOST] { try set(option, 0) }
        // See `TLSRecord.isProxyContext`.
        try set(CURLOPT_PROXY_SSL_OPTIONS, Int(CURLSSLOPT_ALLOW_BEAST))
        if let caFile {
            for option in [CURLOPT_CAINFO, CURLOPT_PROXY_CAINFO] { try set(option, caFile) }
            for option in [CURLOPT_CAPATH, CURLOPT_PROXY_CAPATH] { try set(option, String?.none) }
        }
    }

    /// Sets which connections the request may use, and whether later requests may reuse its connection.
    private func secure(_ request: SharedRequest) throws(TransferFailure) {
        // A connection-level login applies to all streams on the connection.
        let isLogin = !request.handshakes.isEmpty
        // A paused body would delay the other streams on its connection: libcurl reads for all of them, and buffers
        // megabytes for the paused one.
        let isAlone = isLogin || request.options.delivery == .fromHeader || request.options.maxBytesPerSecond != nil
        if isAlone { try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)) }
        // In a resumed TLS session the server sends no certificate.
        if request.identity != .none || request.trust == .ask { try set(CURLOPT_SSL_SESSIONID_CACHE, false) }
        let isSwitched = request.options.switchesProtocol
        if request.trust == .ask || isSwitched { try set(CURLOPT_FORBID_REUSE, true) }
        if request.trust == .ask || isSwitched || request.needsNewConnection { try set(CURLOPT_FRESH_CONNECT, true) }
    }
}

extension SharedRequest {
    var handshakes: [Handshake] {
        var handshakes: [Handshake] = []
        if let handshake = value.handshake { handshakes.append(handshake) }
        if let handshake = value.proxyHandshake { handshakes.append(handshake) }
        return handshakes
    }

    /// Whether libcurl's cookie engine runs. In the rounds of a login at a forwarding proxy it would take the proxy's cookies for
    /// those of the server.
    var usesCookies: Bool {
        value.options.keepsCookies && !value.options.opensTunnel
            && (isTunnelled || !handshakes.contains { $0.target == .proxy })
    }

    /// Whether libcurl stores a password with the connections of this request.
    var leavesPassword: Bool { handshakes.contains { $0.scheme == .ntlm } || value.proxy?.password != nil }

    /// - Throws: `TransferFailure` of kind `internalError` for connection state without an identity, because requests without
    ///   an identity share their connections, and for two logins to the same target.
    func checkCombination() throws(TransferFailure) {
        let marksConnections =
            value.trust.isException || value.clientCertificate != nil || !handshakes.isEmpty
            || value.refusesCertificateRequest
        guard value.identity != .none || !marksConnections else {
            throw TransferFailure(.internalError, "request with connection state but without an identity")
        }
        let isClear = handshakes.allSatisfy { handshake in
            switch handshake.target {
            case .origin: value.authorization == nil && value.headers.firstValue(of: "Authorization") == nil
            case .proxy: value.proxy.map { $0.kind != .socks5h && $0.authorization == nil } ?? false
            }
        }
        let isOneEach = value.proxyHandshake.map { $0.target == .proxy && value.handshake?.target != .proxy } ?? true
        guard isClear && isOneEach else {
            throw TransferFailure(
                .internalError,
                "a connection-level login (NTLM, Negotiate) excludes any other login to the same host")
        }
    }
}

extension TrustPolicy {
    /// Whether the policy accepts a certificate that does not verify, so that other requests must not use the connection.
    var isException: Bool {
        switch self {
        case .leaf: true
        case .verify, .ask: false
        }
    }
}

extension SharedRequest {
    /// The speed below which the transfer fails. A streamed body has a default limit, so that it cannot stall forever.
    var slowest: LowSpeed? {
        let options = value.options
        if options.switchesProtocol { return nil }
        if let limit = options.lowSpeed { return limit }
        return options.delivery == .fromHeader ? LowSpeed(bytesPerSecond: 1, seconds: EngineLimits.stallSeconds) : nil
    }

    /// Whether the method is safe (RFC 9110 section 9.2.1).
    var isSafe: Bool { ["GET", "HEAD", "OPTIONS", "TRACE"].contains(value.method) }
}
