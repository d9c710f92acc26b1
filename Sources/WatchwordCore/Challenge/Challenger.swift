internal import WatchwordProtocol

/// The server or proxy that sends a challenge. A server and a proxy at the same address are different challengers
/// (SEMANTICS rule 19).
enum Challenger: Sendable, Hashable {
    case server(Origin)
    case proxy(ProxyEndpoint)

    init(_ space: ProtectionSpace) { self.init(SpacePattern(space)) }

    init(_ pattern: SpacePattern) {
        if let type = pattern.proxyType {
            self = .proxy(ProxyEndpoint(type: type, host: pattern.host, port: pattern.port))
        } else {
            let scheme: Origin.Scheme = pattern.scheme == "https" ? .https : .http
            self = .server(Origin(scheme: scheme, host: pattern.host, port: pattern.port))
        }
    }

    var isProxy: Bool { proxyType != nil }

    var proxyType: ProxyType? {
        if case .proxy(let proxy) = self { proxy.type } else { nil }
    }

    var scheme: String {
        switch self {
        case .server(let origin): origin.scheme.rawValue
        case .proxy(let proxy): proxy.type.rawValue
        }
    }

    var host: ExactText {
        switch self {
        case .server(let origin): origin.host
        case .proxy(let proxy): proxy.host
        }
    }

    var port: Int {
        switch self {
        case .server(let origin): origin.port
        case .proxy(let proxy): proxy.port
        }
    }

    /// The form in messages.
    var text: String {
        switch self {
        case .server(let origin): origin.text
        case .proxy(let proxy): "the proxy \(proxy.text)"
        }
    }

    func space(realm: ExactText?, _ method: AuthenticationMethod) -> ProtectionSpace {
        ProtectionSpace(
            scheme: scheme, host: host, port: port, realm: realm, authenticationMethod: method, proxyType: proxyType)
    }

    func matches(_ patterns: [HostPattern]) -> Bool { patterns.contains { $0.matches(host: host, port: port) } }
}

extension ProtectionSpace {
    /// Whether this is the space of a Basic challenge without a realm. SOCKS has no realms and does not count.
    var lacksRealm: Bool { authenticationMethod == .httpBasic && realm == nil && proxyType != .socks }
}

extension Origin {
    /// Whether connections to this origin stay on this machine.
    var isLoopback: Bool { Loopback.isLoopback(host) }
}
