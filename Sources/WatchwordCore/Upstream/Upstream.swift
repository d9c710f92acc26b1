public import WatchwordProtocol

/// A way to reach a server: through a proxy, or without one.
public enum Upstream: Sendable, Hashable {
    case direct
    case proxy(ProxyEndpoint)

    /// Parses `direct`, or the URL of a proxy.
    /// - Throws: `FetchFailure` of kind `badURL`.
    public init(_ text: String) throws(FetchFailure) {
        self = text == "direct" ? .direct : .proxy(try ProxyEndpoint(text))
    }

    var endpoint: ProxyEndpoint? {
        if case .proxy(let endpoint) = self { endpoint } else { nil }
    }
}

/// The upstreams for some hosts, in order of preference.
public struct UpstreamRule: Sendable, Equatable {
    public var hosts: [HostPattern]
    /// Never empty.
    public var upstreams: [Upstream]

    public init(hosts: [HostPattern], upstreams: [Upstream]) {
        self.hosts = hosts
        self.upstreams = upstreams
    }
}

/// The configured upstreams. The first of these that applies to a server is used: the exceptions, the first rule with a
/// matching host, the PAC file or the settings of the desktop, and the proxy for all servers.
public struct ProxyRule: Sendable, Equatable {
    /// The result of `choice`.
    enum Choice: Sendable, Equatable {
        /// The upstreams in order of preference; never empty.
        case upstreams([Upstream])
        /// The PAC file or the settings of the desktop have to be consulted first.
        case unknown
        /// They could not be consulted, and there is no proxy for this case.
        case failed(String)
    }

    /// The proxy for all servers; `nil` for none. With a PAC file or the settings of the desktop, it is used if these
    /// cannot be consulted.
    public var endpoint: ProxyEndpoint?
    /// Hosts that are reached without a proxy.
    public var exceptions: [HostPattern]
    public var rules: [UpstreamRule]
    /// The known results of the PAC file or of the settings of the desktop; `nil` if neither is configured.
    public var found: FoundUpstreams?

    public init(
        endpoint: ProxyEndpoint? = nil, exceptions: [HostPattern] = [], rules: [UpstreamRule] = [],
        found: FoundUpstreams? = nil
    ) {
        self.endpoint = endpoint
        self.exceptions = exceptions
        self.rules = rules
        self.found = found
    }

    /// Returns the upstreams for a server.
    func choice(for origin: Origin, now: Duration) -> Choice {
        if let known = configured(for: origin) { return .upstreams(known) }
        let rest = endpoint.map { Upstream.proxy($0) }
        guard let found else { return .upstreams([rest ?? .direct]) }
        switch found.result(for: origin, now: now) {
        case nil: return .unknown
        case .success(let upstreams): return .upstreams(upstreams)
        case .failure(let failure):
            // guard: upstream-not-silently-direct
            guard let rest, !failure.isBusy else { return .failed(failure.text) }
            return .upstreams([rest])
        }
    }

    /// Whether someone who forged the PAC file on its way could have chosen the upstreams of a server.
    func isForgeable(for origin: Origin) -> Bool {
        found?.isForgeable(for: origin) == true && configured(for: origin) == nil
    }

    /// Whether the configuration itself names this proxy for a server.
    func names(_ endpoint: ProxyEndpoint, for origin: Origin) -> Bool {
        configured(for: origin).map { $0.contains(.proxy(endpoint)) } ?? (self.endpoint == endpoint)
    }

    /// Returns the upstreams by exception or rule; `nil` if none applies.
    private func configured(for origin: Origin) -> [Upstream]? {
        func matches(_ hosts: [HostPattern]) -> Bool {
            hosts.contains { $0.matches(host: origin.host, port: origin.port) }
        }
        if matches(exceptions) { return [.direct] }
        return rules.first { matches($0.hosts) }?.upstreams
    }
}
