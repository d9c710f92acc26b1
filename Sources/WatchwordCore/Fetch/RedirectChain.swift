internal import WatchwordProtocol

/// The current request, its proxy, and the redirects followed so far (semantics rule 23).
struct RedirectChain: Sendable {
    /// The outcome of looking for a redirect in a response.
    enum Lead: Sendable {
        case nowhere
        case onward(HopRequest)
        case refused(FetchFailure)
    }

    private let intent: FetchIntent
    private(set) var hop: HopRequest
    /// The proxy of this hop.
    private(set) var route: ProxyRoute?
    private(set) var redirects = 0
    /// Whether a server has accepted a login or a certificate: then no redirect from https to http is followed.
    var hasAuthenticated = false

    init(_ intent: FetchIntent) {
        self.intent = intent
        let plan = intent.plan
        hop = HopRequest(url: plan.url, method: plan.method, headers: plan.headers, body: plan.body)
    }

    var origin: Origin { hop.url.origin }
    var server: Challenger { .server(origin) }
    var isSecure: Bool { origin.scheme == .https }
    var isTunnel: Bool { isSecure || route?.endpoint.type == .socks }

    func challenger(at side: Side) -> Challenger? {
        side == .server ? server : route.map { .proxy($0.endpoint) }
    }

    /// Where a credential has to be good: to a proxy paths mean nothing.
    func path(at challenger: Challenger) -> ExactText { challenger.isProxy ? "/" : hop.url.path }

    /// Whether everybody on the way can read what is sent there. Behind a proxy "localhost" is not this machine.
    func isReadable(_ challenger: Challenger) -> Bool {
        guard challenger.scheme != "https" else { return false }
        return !Loopback.isLoopback(challenger.host) || !challenger.isProxy && route != nil
    }

    /// Whether the connection leads to the server itself; through a proxy that forwards requests it does only where the proxy
    /// says so.
    func reachesServer(_ response: TransferResponse) -> Bool {
        guard let route, route.endpoint.type != .socks, origin.scheme == .http else { return true }
        return response.headers.values(of: "Proxy-Support").contains {
            $0.equalsIgnoringASCIICase("Session-Based-Authentication")
        }
    }

    // MARK: The next hop

    mutating func give(_ body: RequestBody) { hop.body = body }

    mutating func enter(_ next: HopRequest) { hop = next }

    /// Chooses the proxy of this hop. Returns whether it is another one than before.
    mutating func chooseRoute(_ rule: ProxyRule) -> Bool {
        let before = route
        let configured = rule.endpoint(for: origin)
        switch intent.plan.proxy {
        case .none: route = nil
        case .configured: route = configured.map { ProxyRoute(endpoint: $0, isNamedByFetch: false) }
        case .named(let endpoint): route = ProxyRoute(endpoint: endpoint, isNamedByFetch: endpoint != configured)
        }
        return route != before
    }

    /// Counts a redirect that may be followed.
    mutating func lead(of response: TransferResponse, _ hosts: HostRules) -> Lead {
        let plan = intent.plan
        guard plan.maxRedirects > 0 else { return .nowhere }
        do throws(FetchFailure) {
            let next = try RedirectPolicy.next(
                after: hop, response: response, hasAuthenticated: hasAuthenticated, plan.redirects)
            guard let next else { return .nowhere }
            redirects += 1
            guard redirects <= plan.maxRedirects else { return .refused(tooMany) }
            try hosts.check(next.url.origin)
            return .onward(next)
        } catch {
            return .refused(error)
        }
    }

    private var tooMany: FetchFailure {
        FetchFailure(
            .tooManyRedirects,
            "More than \(intent.plan.maxRedirects) redirects, the last at \(DisplayURL.text(hop.url.text)). Allow more with maxRedirects."
        )
    }
}
