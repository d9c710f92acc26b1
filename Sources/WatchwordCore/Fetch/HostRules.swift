public import WatchwordProtocol

/// From which hosts anything may be fetched.
public struct HostRules: Sendable, Equatable {
    /// `nil` allows all.
    public var allowed: [HostPattern]?
    /// Wins over `allowed`.
    public var denied: [HostPattern]

    public init(allowed: [HostPattern]? = nil, denied: [HostPattern] = []) {
        self.allowed = allowed
        self.denied = denied
    }

    /// - Throws: `FetchFailure` of kind `denied`.
    public func check(_ origin: Origin) throws(FetchFailure) {
        guard !allow(origin) else { return }
        throw FetchFailure(
            .denied, "The configuration does not allow fetches from \(origin.text) (fetch.allow, fetch.deny).")
    }

    private func allow(_ origin: Origin) -> Bool {
        func matches(_ pattern: HostPattern) -> Bool { pattern.matches(host: origin.host, port: origin.port) }
        return !denied.contains(where: matches) && (allowed?.contains(where: matches) ?? true)
    }
}

/// Through which proxy requests go.
public struct ProxyRule: Sendable, Equatable {
    /// `nil` for none.
    public var endpoint: ProxyEndpoint?
    /// Hosts that are reached without it.
    public var exceptions: [HostPattern]

    public init(endpoint: ProxyEndpoint? = nil, exceptions: [HostPattern] = []) {
        self.endpoint = endpoint
        self.exceptions = exceptions
    }

    func endpoint(for origin: Origin) -> ProxyEndpoint? {
        exceptions.contains { $0.matches(host: origin.host, port: origin.port) } ? nil : endpoint
    }
}
