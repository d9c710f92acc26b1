internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

extension EasyHandle {
    func apply(_ proxy: ProxyRequest, for request: TransferRequest) throws(TransferFailure) {
        guard (1...65_535).contains(proxy.port), proxy.host.isPlainHost else {
            throw TransferFailure(.internalError, "The proxy's address cannot be used.", cause: .proxyUnreachable)
        }
        try set(CURLOPT_PROXYTYPE, Int(proxy.kind.type.rawValue))
        try set(CURLOPT_PROXY, "\(proxy.kind.rawValue)://\(proxy.host):\(proxy.port)")
        try set(CURLOPT_NOPROXY, "")
        // The answer to CONNECT is needed when it is a 407; it comes before everything that the origin says.
        try set(CURLOPT_SUPPRESS_CONNECT_HEADERS, !request.isTunnelled)
        // Never GSS-API; without a user only "no authentication" is offered.
        try set(CURLOPT_SOCKS5_AUTH, watchword_curl_auth_basic)
        if proxy.kind == .socks5h {
            try proxy.checkLogin()
            if let user = proxy.user { try set(CURLOPT_PROXYUSERNAME, user) }
            if let password = proxy.password { try set(CURLOPT_PROXYPASSWORD, password) }
        }
    }

    /// NTLM, chosen by the core; libcurl never chooses. For Negotiate see `NegotiateLogin`.
    func apply(_ handshake: Handshake) throws(TransferFailure) {
        guard handshake.scheme == .ntlm else { return }
        let isOrigin = handshake.target == .origin
        try set(isOrigin ? CURLOPT_HTTPAUTH : CURLOPT_PROXYAUTH, watchword_curl_auth_ntlm)
        // Always with the backslash: else a part of the user's name could be taken for the domain.
        try set(
            isOrigin ? CURLOPT_USERNAME : CURLOPT_PROXYUSERNAME, NTLMText.name("\(handshake.domain)\\\(handshake.user)")
        )
        let password = handshake.password ?? Secret(capacity: 0) { _ in 0 }
        try set(isOrigin ? CURLOPT_PASSWORD : CURLOPT_PROXYPASSWORD, NTLMText.password(password))
    }
}

extension ProxyRequest {
    /// RFC 1929 has one byte for each length.
    fileprivate func checkLogin() throws(TransferFailure) {
        guard max(user?.count ?? 0, password?.count ?? 0) <= 255 else {
            throw TransferFailure(
                .cannotConnect,
                "The login for the proxy at \(host), port \(port), is too long: SOCKS takes 255 bytes for a user or a password.",
                cause: .proxyLoginTooLong)
        }
    }
}

extension TransferRequest {
    /// The proxy is asked to CONNECT: what it says itself comes before the tunnel stands.
    var isTunnelled: Bool { url.origin.scheme == .https && proxy.map { $0.kind != .socks5h } ?? false }
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
    /// Nothing in it that could end the host's part of a URL.
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
