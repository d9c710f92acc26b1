internal import CCurl
internal import WatchwordCore
internal import WatchwordProtocol

/// What a proxy is to blame for: it is named in place of the origin.
extension Transfer {
    /// `nil` when it is not the proxy that has failed.
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
        case CURLE_OPERATION_TIMEDOUT: return isAtProxy(proxy) ? lateness(proxy) : nil
        default:
            let isEarly = proxy.kind == .https && originTLS == nil
            let hasNoTLS = proxyTLS?.isComplete == false || isAboutTLS(code)
            if proxyTLS?.refusal != nil || isEarly && hasNoTLS { return failure(.tlsFailed, .proxyTLSFailed, proxy) }
            return isBeforeTunnel ? failure(.cannotConnect, .proxyRefused(status: nil), proxy) : nil
        }
    }

    /// How long it was allowed to take what it did not do in time.
    var timeLimit: Duration { hasMetEarlierLimit ? .milliseconds(EngineLimits.connectMilliseconds) : request.timeout }

    /// The time for connecting, or what is allowed to a slow transfer, was over before that for the whole exchange.
    var hasMetEarlierLimit: Bool { start.duration(to: .now) < request.timeout - .milliseconds(100) }

    /// A connection was begun for this transfer, and the proxy has not made it a tunnel yet.
    private var isBeforeTunnel: Bool {
        request.isTunnelled && originTLS == nil && easy.number(CURLINFO_NUM_CONNECTS) > 0
    }

    /// What runs out of time waits for the proxy. With SOCKS nobody can tell.
    private func isAtProxy(_ proxy: ProxyRequest) -> Bool {
        guard proxy.kind != .socks5h else { return false }
        return request.isTunnelled ? isBeforeTunnel : easy.number(CURLINFO_REQUEST_SIZE) == 0
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
        if cause == .proxyTLSFailed { failure.serverTrust = proxyTLS?.refusal }
        return failure
    }

    /// Only the limit of its own makes it the proxy's failure: a fetch that gives little time has run out of it, wherever.
    private func lateness(_ proxy: ProxyRequest) -> TransferFailure {
        let text = "The proxy at \(proxy.place), did not answer within \(timeLimit.wholeMilliseconds) ms."
        return TransferFailure(.timedOut, explained(text), cause: hasMetEarlierLimit ? .proxyUnreachable : nil)
    }

    private func explained(_ sentence: String) -> String {
        let reason = String(cString: errorText)
        return reason.isEmpty ? sentence : "\(sentence) (\(reason.shortened))"
    }
}

extension ProxyRequest {
    fileprivate var place: String { "\(host), port \(port)" }
}

extension TransferFailure.Cause {
    fileprivate func sentence(_ request: TransferRequest, _ proxy: ProxyRequest) -> String {
        switch self {
        case .proxyLoginRefused: "The proxy at \(proxy.place), wants a login, or another one."
        case .proxyRefused where proxy.kind == .socks5h:
            "The proxy at \(proxy.place), does not connect to \(request.url.origin.host)."
        case .proxyRefused: "What answers at \(proxy.place), does not answer as a proxy does."
        case .proxyTLSFailed: "No protected connection to the proxy at \(proxy.place), could be made."
        default: "The proxy at \(proxy.place), does not answer. Check that it runs."
        }
    }
}
