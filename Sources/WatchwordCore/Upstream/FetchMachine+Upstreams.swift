internal import WatchwordProtocol

/// The choice of the proxy of each hop, and of another one if it fails.
extension FetchMachine {
    /// Continues a hop whose upstreams were unknown. Returns `nil` if they still are.
    mutating func foundUpstreams(
        for previous: Origin?, _ events: [FetchEvent], since: Duration, _ context: inout FetchContext
    ) -> FetchStep? {
        if time.isUsedUp(at: context.now, inWaitSince: since) { return fail(timeoutFailure, &context) }
        guard context.environment.proxy.choice(for: chain.origin, now: context.now) != .unknown else { return nil }
        time.recordWait(context.now - since)
        return enterHop(from: previous, &context, events: events)
    }

    /// Records whether the proxy of a failed request could be reached. Returns the step that sends the request through
    /// the next upstream; `nil` if there is none, or if a server may have received the request.
    mutating func failOver(after failure: TransferFailure, _ context: inout FetchContext) -> FetchStep? {
        let route = chain.route
        guard failure.isOfUpstream(route) else { return nil }
        // A client with a short time limit must not change the choice for others.
        if let endpoint = route?.endpoint, intent.plan.options.connectTimeout == nil {  // guard: failover-of-others
            context.upstreams.recordFailure(of: endpoint, now: context.now)
        }
        // guard: failover-unsafe-method, failover-sends-nothing-twice
        guard !failure.hasSentRequest || isRepeatable, bodyState != .spent else { return nil }
        guard logins.search.situation.chain.chooseNextRoute() else { return nil }
        logins.search.situation.leases.releaseAll(&context)
        return enterRoute(isOther: true, from: chain.origin, &context, events: [])
    }

    /// Whether the request may be sent twice. A tunnel that was not opened has carried nothing.
    private var isRepeatable: Bool {
        intent.plan.options.opensTunnel || ["GET", "HEAD", "OPTIONS", "TRACE"].contains(chain.hop.method)
    }
}

extension TransferFailure {
    /// Whether the upstream could not be used, for any server. A login, a refusal by the proxy, and a certificate that
    /// is not trusted are not such failures.
    fileprivate func isOfUpstream(_ route: ProxyRoute?) -> Bool {
        guard let route else { return cause == nil && [.cannotConnect, .nameNotResolved].contains(kind) }
        return switch cause {
        case .proxyUnreachable: true
        case .proxyTLSFailed: serverTrust == nil  // guard: failover-untrusted-proxy
        case .proxyRefused(status: nil): route.endpoint.type != .socks
        default: false
        }
    }
}
