public import WatchwordProtocol

/// The hosts that fetches may contact (`fetch.allow`, `fetch.deny`).
public struct HostRules: Sendable, Equatable {
    /// `nil` allows all.
    public var allowed: [HostPattern]?
    /// Takes precedence over `allowed`.
    public var denied: [HostPattern]

    public init(allowed: [HostPattern]? = nil, denied: [HostPattern] = []) {
        self.allowed = allowed
        self.denied = denied
    }

    /// - Throws: `FetchFailure` of kind `denied`.
    public func check(_ origin: Origin) throws(FetchFailure) {
        guard denies(origin.host, origin.port) || !allows(origin.host, origin.port) else { return }
        throw FetchFailure(
            .denied, "the configuration does not allow fetches from \(origin.text); see fetch.allow and fetch.deny")
    }

    /// Checks a proxy. The configured proxy need not be in `allowed`.
    /// - Throws: `FetchFailure` of kind `denied`.
    func check(_ route: ProxyRoute) throws(FetchFailure) {
        let endpoint = route.endpoint
        guard denies(endpoint.host, endpoint.port) || route.isNamedByFetch && !allows(endpoint.host, endpoint.port)
        else { return }
        throw FetchFailure(
            .denied, "the configuration does not allow the proxy \(endpoint.text); see fetch.allow and fetch.deny")
    }

    /// The rules that are checked after name resolution.
    var addresses: AddressRules { AddressRules(denied: denied) }

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
