internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

/// Failures that the proxy causes; their messages name the proxy in place of the origin.
extension CurlTransfer {
    /// The failure for a result code, if the proxy caused it; otherwise `nil`.
    func proxyFailure(_ code: CURLcode) -> TransferFailure? {
        guard let proxy = request.proxy else { return nil }
        switch code {
        case CURLE_COULDNT_RESOLVE_PROXY: return failure(.nameNotResolved, .proxyUnreachable, proxy)
        case CURLE_COULDNT_CONNECT: return failure(.cannotConnect, .proxyUnreachable, proxy)
        case CURLE_PROXY:
            let reason = CURLproxycode(UInt32(easy.number(CURLINFO_PROXY_ERROR)))
            let isLogin = reason == CURLPX_USER_REJECTED || reason == CURLPX_NO_AUTH
            return failure(.cannotConnect, isLogin ? .proxyLoginRefused : .proxyRefused(status: nil), proxy)
        case CURLE_OUT_OF_MEMORY: return nil
        case CURLE_OPERATION_TIMEDOUT:
            if isBeforeConnection(proxy) { return lateness(proxy, .proxyUnreachable) }
            return isBeforeTunnel && proxy.kind != .socks5h ? lateness(proxy, .proxyRefused(status: nil)) : nil
        default:
            let isEarly = proxy.kind == .https && connections.origin == nil
            let hasNoTLS = connections.proxy?.isComplete == false || isAboutTLS(code)
            if connections.proxy?.refusal != nil || isEarly && hasNoTLS {
                return failure(.tlsFailed, .proxyTLSFailed, proxy)
            }
            return isBeforeTunnel ? failure(.cannotConnect, .proxyRefused(status: nil), proxy) : nil
        }
    }

    /// See `TransferFailure.hasUnansweredLogin`.
    func hasUnansweredLogin(_ code: CURLcode) -> Bool {
        guard let proxy = request.proxy, proxy.kind == .socks5h, proxy.password != nil, !hasTunnel,
            easy.number(CURLINFO_LOCAL_PORT) != 0 || code == CURLE_PROXY
        else { return false }
        let reason = CURLproxycode(UInt32(easy.number(CURLINFO_PROXY_ERROR)))
        let isOfLogin = [CURLPX_USER_REJECTED, CURLPX_NO_AUTH, CURLPX_LONG_USER, CURLPX_LONG_PASSWD].contains(reason)
        // All of RFC 1928, section 6, follow the login.
        let isReply = (CURLPX_REPLY_ADDRESS_TYPE_NOT_SUPPORTED.rawValue...CURLPX_REPLY_UNASSIGNED.rawValue)
            .contains(reason.rawValue)
        return code != CURLE_PROXY || !isOfLogin && !isReply
    }

    /// The timeout that a transfer exceeded.
    var timeLimit: Duration {
        guard hasMetEarlierLimit else { return request.timeout }
        return request.options.connectTimeout ?? .milliseconds(EngineLimits.connectMilliseconds)
    }

    /// Whether the transfer ended before its total timeout: the limit for connecting or for slow transfers was exceeded.
    var hasMetEarlierLimit: Bool { timing.elapsed() < request.timeout - .milliseconds(100) }

    /// Whether a new connection was started for this transfer, and the proxy has not opened a tunnel on it yet.
    private var isBeforeTunnel: Bool {
        request.isTunnelled && connections.origin == nil && easy.number(CURLINFO_NUM_CONNECTS) > 0
    }

    /// Whether a transfer that timed out had no connection to the proxy, including its TLS. Over SOCKS, nothing that libcurl
    /// counts was sent before the tunnel is open.
    private func isBeforeConnection(_ proxy: ProxyRequest) -> Bool {
        easy.number(CURLINFO_REQUEST_SIZE) == 0
            && (proxy.kind != .socks5h || easy.number(CURLINFO_LOCAL_PORT) == 0)
    }

    private func isAboutTLS(_ code: CURLcode) -> Bool {
        switch code {
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CIPHER, CURLE_SSL_CERTPROBLEM,
            CURLE_SSL_CACERT_BADFILE:
            true
        default: false
        }
    }

    private func failure(
        _ kind: TransferFailure.Kind, _ cause: TransferFailure.Cause, _ proxy: ProxyRequest
    ) -> TransferFailure {
        var failure = TransferFailure(kind, explained(cause.sentence(request, proxy)), cause: cause)
        if cause == .proxyTLSFailed { failure.serverTrust = connections.proxy?.refusal }
        return failure
    }

    /// A timeout at the proxy. It has a cause only if the connect timeout was exceeded: a fetch with a short timeout may time out
    /// anywhere.
    private func lateness(_ proxy: ProxyRequest, _ cause: TransferFailure.Cause) -> TransferFailure {
        let text = "no response from the proxy at \(proxy.place), within \(timeLimit.wholeMilliseconds) ms"
        return TransferFailure(.timedOut, explained(text), cause: hasMetEarlierLimit ? cause : nil)
    }

    private func explained(_ sentence: String) -> String {
        let reason = handle.errorText
        return reason.isEmpty ? sentence : "\(sentence) (\(reason.shortened))"
    }
}

extension ProxyRequest {
    fileprivate var place: String { "\(host), port \(port)" }
}

extension TransferFailure.Cause {
    fileprivate func sentence(_ request: SharedRequest, _ proxy: ProxyRequest) -> String {
        switch self {
        case .proxyLoginRefused: "the proxy at \(proxy.place), requires a login or rejected the one sent"
        case .proxyRefused where proxy.kind == .socks5h:
            "the proxy at \(proxy.place), refused to connect to \(request.url.origin.host)"
        case .proxyRefused: "the server at \(proxy.place), does not respond like a proxy"
        case .proxyTLSFailed: "TLS handshake with the proxy at \(proxy.place), failed"
        default: "cannot connect to the proxy at \(proxy.place); check that it runs"
        }
    }
}
