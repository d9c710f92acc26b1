public import WatchwordProtocol

/// The hosts that may be fetched from, and to which connections may be made.
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
        guard denies(origin.host, origin.port) || !allows(origin.host, origin.port) else { return }
        throw FetchFailure(
            .denied, "The configuration does not allow fetches from \(origin.text) (fetch.allow, fetch.deny).")
    }

    /// A proxy that the configuration names need not be among the hosts that may be fetched from.
    /// - Throws: `FetchFailure` of kind `denied`.
    func check(_ route: ProxyRoute) throws(FetchFailure) {
        let endpoint = route.endpoint
        guard denies(endpoint.host, endpoint.port) || route.isNamedByFetch && !allows(endpoint.host, endpoint.port)
        else { return }
        throw FetchFailure(
            .denied, "the configuration does not allow the proxy \(endpoint.text) (fetch.allow, fetch.deny)")
    }

    /// What is checked after name resolution.
    var addresses: AddressRules { AddressRules(denied: denied) }

    private func denies(_ host: ExactText, _ port: Int) -> Bool {
        guard !denied.isEmpty else { return false }
        if denied.contains(where: { $0.matches(host: host, port: port) }) { return true }
        // Whoever resolves the name, or does not: a remote proxy resolves it out of sight.
        return NetworkAddress(host: host.string).map { addresses.denies($0, port: port) } ?? false
    }

    private func allows(_ host: ExactText, _ port: Int) -> Bool {
        allowed?.contains { $0.matches(host: host, port: port) } ?? true
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
