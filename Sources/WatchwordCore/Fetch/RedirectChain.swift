internal import WatchwordProtocol

/// The current request, its proxy, and the redirects followed so far (SEMANTICS rule 23).
struct RedirectChain: Sendable {
    /// The next hop of a redirect, or the reason why none is followed.
    enum RedirectOutcome: Sendable {
        /// The response is not a redirect, or redirects are not followed.
        case nowhere
        case onward(HopRequest)
        case refused(FetchFailure)
    }

    private let fetch: SharedFetchRequest
    private(set) var hop: HopRequest
    /// The proxy of this hop.
    private(set) var route: ProxyRoute?
    /// The upstreams that have not been tried for this hop.
    private var alternatives: [Upstream] = []
    /// Whether someone who forged the PAC file could have chosen these upstreams.
    private var isForgeable = false
    private(set) var redirects = 0
    var cookies = FetchCookies()
    /// Whether a server has accepted a login or a client certificate. If so, no redirect from https to http is
    /// followed.
    var hasAuthenticated = false

    init(_ fetch: SharedFetchRequest) {
        self.fetch = fetch
        hop = HopRequest(url: fetch.url, method: fetch.method, headers: fetch.headers, body: fetch.body)
    }

    var origin: Origin { hop.url.origin }
    var server: Challenger { .server(origin) }
    var isSecure: Bool { origin.scheme == .https }
    var isTunnel: Bool { isSecure || route?.endpoint.type == .socks }

    func challenger(at side: Side) -> Challenger? {
        side == .server ? server : route.map { .proxy($0.endpoint) }
    }

    /// Returns the path that a credential has to cover; `/` for a proxy.
    func path(at challenger: Challenger) -> ExactText { challenger.isProxy ? "/" : hop.url.loginPath }

    /// Whether others can read a request to `challenger` on the network. Behind a proxy, "localhost" is not this
    /// machine.
    func isReadable(_ challenger: Challenger) -> Bool {
        guard challenger.scheme != "https" else { return false }
        return !Loopback.isLoopback(challenger.host) || !challenger.isProxy && route != nil
    }

    /// Whether the connection leads to the server itself, so that a connection-level login is possible. Through a
    /// forwarding proxy it does so only if the response has `Proxy-Support: Session-Based-Authentication`
    /// (SECURITY-RULES N2).
    func reachesServer(_ response: TransferResponse) -> Bool {
        guard let route, route.endpoint.type != .socks, origin.scheme == .http else { return true }
        return response.headers.values(of: "Proxy-Support").contains {
            $0.equalsIgnoringASCIICase("Session-Based-Authentication")
        }
    }

    // MARK: The next hop

    mutating func supply(_ body: RequestBody) { hop.body = body }

    mutating func enter(_ next: HopRequest) { hop = next }

    /// Chooses the proxy of this hop. Returns whether it differs from the previous one; `nil` if it is not known yet.
    /// - Throws: `FetchFailure` of kind `proxyFailed` if it cannot be known.
    mutating func chooseRoute(
        _ rule: ProxyRule, _ health: UpstreamHealth = UpstreamHealth(), now: Duration
    ) throws(FetchFailure) -> Bool? {
        let before = route
        alternatives = []
        switch fetch.proxy {
        case .none: route = nil
        case .configured:
            switch rule.choice(for: origin, now: now) {
            case .unknown: return nil
            case .failed(let text): throw FetchFailure(.proxyFailed, text)
            case .upstreams(let upstreams):
                alternatives = health.ordered(upstreams, now: now)
                isForgeable = rule.isForgeable(for: origin)
                _ = chooseNextRoute()
            }
        case .named(let endpoint):
            route = ProxyRoute(endpoint: endpoint, isNamedByFetch: !rule.names(endpoint, for: origin))
        }
        return route != before
    }

    /// Whether another upstream is left if this one fails.
    var hasOtherRoutes: Bool { !alternatives.isEmpty }

    /// Removes the connection without a proxy from the upstreams that are left.
    mutating func excludeDirect() { alternatives.removeAll { $0 == .direct } }

    /// Chooses the next upstream of this hop; returns `false` if all have been tried.
    mutating func chooseNextRoute() -> Bool {
        guard !alternatives.isEmpty else { return false }
        route = alternatives.removeFirst().endpoint.map {
            ProxyRoute(endpoint: $0, isNamedByFetch: false, isForgeable: isForgeable)
        }
        return true
    }

    /// Returns where a response leads, and counts the redirect if it is one.
    mutating func redirectOutcome(of response: TransferResponse, _ hosts: HostRules) -> RedirectOutcome {
        guard fetch.maxRedirects > 0 else { return .nowhere }
        do throws(FetchFailure) {
            let next = try RedirectPolicy.next(
                after: hop, response: response, hasAuthenticated: hasAuthenticated, fetch.redirects)
            guard let next else { return .nowhere }
            redirects += 1
            guard redirects <= fetch.maxRedirects else { return .refused(tooMany) }
            try hosts.check(next.url.origin)  // guard: redirect-to-denied-host
            return .onward(next)
        } catch {
            return .refused(error)
        }
    }

    private var tooMany: FetchFailure {
        FetchFailure(
            .tooManyRedirects,
            "too many redirects (limit \(fetch.maxRedirects)), the last at \(DisplayURL.text(hop.url.text)); allow more redirects"
        )
    }
}
