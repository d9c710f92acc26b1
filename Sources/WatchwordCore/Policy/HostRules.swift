public import WatchwordProtocol

/// The hosts that fetches may contact (`fetch.allow`, `fetch.deny`).
public struct HostRules: Sendable, Equatable {
    /// `nil` allows all.
    public var allowed: [HostPattern]?
    /// Takes precedence over `allowed`.
    public var denied: [HostPattern]
    /// The broker's own ports, which are denied to everyone; `nil` for none.
    public var own: OwnPorts?

    public init(allowed: [HostPattern]? = nil, denied: [HostPattern] = []) {
        self.allowed = allowed
        self.denied = denied
    }

    /// - Throws: `FetchFailure` of kind `denied`.
    public func check(_ origin: Origin) throws(FetchFailure) {
        try checkOwn(origin.host, origin.port)
        guard denies(origin.host, origin.port) || !allows(origin.host, origin.port) else { return }
        throw FetchFailure(
            .denied, "the configuration does not allow fetches from \(origin.text); see fetch.allow and fetch.deny")
    }

    /// Checks the server of a PAC file, which the configuration or the desktop names. It need not be in `allowed`.
    /// - Throws: `FetchFailure` of kind `denied`.
    public func check(script origin: Origin) throws(FetchFailure) {
        try checkOwn(origin.host, origin.port)
        guard denies(origin.host, origin.port) else { return }
        throw FetchFailure(.denied, "the configuration does not allow fetches from \(origin.text); see fetch.deny")
    }

    /// Checks a proxy. The configured proxy need not be in `allowed`.
    /// - Throws: `FetchFailure` of kind `denied`.
    func check(_ route: ProxyRoute) throws(FetchFailure) {
        let endpoint = route.endpoint
        try checkOwn(endpoint.host, endpoint.port)
        guard denies(endpoint.host, endpoint.port) || route.isNamedByFetch && !allows(endpoint.host, endpoint.port)
        else { return }
        throw FetchFailure(
            .denied, "the configuration does not allow the proxy \(endpoint.text); see fetch.allow and fetch.deny")
    }

    /// The rules that are checked after name resolution.
    public var addresses: AddressRules { AddressRules(denied: denied, own: own) }

    /// A proxy on this machine would lead there, too, although only the proxy's address is checked later.
    private func checkOwn(_ host: ExactText, _ port: Int) throws(FetchFailure) {
        guard let own, own.contains(port), let address = NetworkAddress(host: host.string) else { return }
        guard own.lead(to: address, port: port) else { return }
        throw FetchFailure(
            .denied,
            "\(host):\(port) is a front of watchword, to which it never connects; use the address of the server itself")
    }

    private func denies(_ host: ExactText, _ port: Int) -> Bool {
        guard !denied.isEmpty else { return false }
        if denied.contains(where: { $0.matches(host: host, port: port) }) { return true }
        // A host that is an address is checked here as well. With a proxy, only the proxy's address is checked later.
        // guard: address-of-a-name
        return NetworkAddress(host: host.string).map { addresses.denies($0, port: port) } ?? false
    }

    private func allows(_ host: ExactText, _ port: Int) -> Bool {
        allowed?.contains { $0.matches(host: host, port: port) } ?? true
    }
}
