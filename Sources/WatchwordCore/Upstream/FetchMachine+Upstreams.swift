internal import WatchwordProtocol

/// The choice of the proxy of each hop, and of another one if it fails.
extension FetchMachine {
    /// Continues a hop whose upstreams were unknown.
    mutating func foundUpstreams(
        for previous: Origin?, since: Duration, _ context: inout FetchContext
    ) -> FetchCommand {
        time.recordWait(context.now - since)
        return enterHop(from: previous, &context)
    }

    /// Records that the proxy of a failed request cannot be reached. Returns the step that sends the request through the
    /// next upstream; `nil` if there is none, or if a server may have received the request.
    mutating func failOver(after failure: TransferFailure, _ context: inout FetchContext) -> FetchCommand? {
        let route = chain.route
        if failure.isOfUpstream(route) {
            // A client that names the proxy, or has a short time limit, must not change the choice for others.
            if let endpoint = route?.endpoint, fetch.options.connectTimeout == nil, fetch.proxy == .configured {
                context.upstreams.recordFailure(of: endpoint, now: context.now)
            }
        } else if failure.cause == .proxyRefused(status: nil), route?.endpoint.type != .socks {
            // The proxy may have ended the connection because of this server.
            hop.chain.excludeDirect()  // guard: failover-refusal-not-direct
        } else {
            return nil
        }
        // guard: failover-sends-nothing-twice
        guard !failure.hasSentRequest || isRepeatable, !body.isSpent else { return nil }
        guard hop.chain.chooseNextRoute() else { return nil }
        hop.leases.releaseAll(&context)
        return enterRoute(isOther: true, from: chain.origin, &context)
    }

    /// Whether the request may be sent twice. A tunnel that was not opened has carried nothing.
    private var isRepeatable: Bool {
        fetch.options.opensTunnel || ["GET", "HEAD", "OPTIONS", "TRACE"].contains(chain.hop.method)
    }
}

extension TransferFailure {
    /// Whether there was no connection to the upstream, so that it cannot be used for any server. A certificate that is
    /// not trusted is not such a failure.
    fileprivate func isOfUpstream(_ route: ProxyRoute?) -> Bool {
        guard route != nil else { return cause == nil && [.cannotConnect, .nameNotResolved].contains(kind) }
        return switch cause {
        case .proxyUnreachable: true
        case .proxyTLSFailed: serverTrust == nil  // guard: failover-untrusted-proxy
        default: false
        }
    }
}
