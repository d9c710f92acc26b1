internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

extension EasyHandle {
    func apply(_ proxy: ProxyRequest, for request: SharedRequest) throws(TransferFailure) {
        guard (1...65_535).contains(proxy.port), proxy.host.isPlainHost else {
            throw TransferFailure(.internalError, "invalid host or port of the proxy", cause: .proxyUnreachable)
        }
        try set(CURLOPT_PROXYTYPE, Int(proxy.kind.type.rawValue))
        try set(CURLOPT_PROXY, "\(proxy.kind.rawValue)://\(proxy.host):\(proxy.port)")
        try set(CURLOPT_NOPROXY, "")
        // The header section of the response to CONNECT is needed for a 407; it precedes everything from the origin.
        try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, !request.isTunnelled)
        // Excludes GSS-API. Without a user name libcurl offers only "no authentication".
        try set(CURLOPT_SOCKS5_AUTH, watchword_curl_auth_basic)
        if proxy.kind == .socks5h {
            try proxy.checkLogin()
            if let user = proxy.user { try set(CURLOPT_PROXYUSERNAME, user) }
            if let password = proxy.password { try set(CURLOPT_PROXYPASSWORD, password) }
        }
    }

    /// Sets up NTLM, if the core chose it; libcurl never chooses a scheme. For Negotiate see `NegotiateLogin`.
    func apply(_ handshake: Handshake) throws(TransferFailure) {
        guard handshake.scheme == .ntlm else { return }
        let isOrigin = handshake.target == .origin
        try set(isOrigin ? CURLOPT_HTTPAUTH : CURLOPT_PROXYAUTH, watchword_curl_auth_ntlm)
        // The backslash is always present: otherwise libcurl could take a part of the user name for the domain.
        try set(
            isOrigin ? CURLOPT_USERNAME : CURLOPT_PROXYUSERNAME, NTLMText.name("\(handshake.domain)\\\(handshake.user)")
        )
        let password = handshake.password ?? Secret(capacity: 0) { _ in 0 }
        try set(isOrigin ? CURLOPT_PASSWORD : CURLOPT_PROXYPASSWORD, NTLMText.password(password))
    }
}

extension ProxyRequest {
    /// Throws for a user name or password over 255 bytes: RFC 1929 section 2 has one byte for each length.
    fileprivate func checkLogin() throws(TransferFailure) {
        guard max(user?.count ?? 0, password?.count ?? 0) <= 255 else {
            throw TransferFailure(
                .cannotConnect,
                "user name or password for the proxy at \(host), port \(port), is too long (SOCKS limit 255 bytes)",
                cause: .proxyLoginTooLong)
        }
    }
}

extension SharedRequest {
    /// Whether the request goes through a CONNECT tunnel of its proxy.
    var isTunnelled: Bool { usesTunnel && value.proxy?.kind != .socks5h }
}

extension ProxyRequest.Kind {
    fileprivate var type: curl_proxytype {
        switch self {
        case .http: CURLPROXY_HTTP
        case .https: CURLPROXY_HTTPS
        case .socks5h: CURLPROXY_SOCKS5_HOSTNAME
        }
    }
}

extension String {
    /// Whether the text contains no character that could end the host in a URL.
    fileprivate var isPlainHost: Bool {
        let name = hasPrefix("[") && hasSuffix("]") ? dropFirst().dropLast() : self[...]
        let mayHoldColons = name.count != count
        return !name.isEmpty
            && name.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
                case 0x3A: mayHoldColons
                default: false
                }
            }
    }
}
