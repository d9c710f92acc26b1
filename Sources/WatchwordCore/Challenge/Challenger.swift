internal import WatchwordProtocol

/// The server or proxy that sends a challenge. A server and a proxy at the same address are different challengers
/// (SEMANTICS rule 19).
enum Challenger: Sendable, Hashable {
    case server(Origin)
    case proxy(ProxyEndpoint)

    init(_ space: ProtectionSpace) { self.init(space.scheme, space.proxyType, space.host, space.port) }

    init(_ pattern: SpacePattern) { self.init(pattern.scheme, pattern.proxyType, pattern.host, pattern.port) }

    private init(_ scheme: String, _ proxyType: ProxyType?, _ host: ExactText, _ port: Int) {
        if let proxyType {
            self = .proxy(ProxyEndpoint(type: proxyType, host: host, port: port))
        } else {
            self = .server(Origin(scheme: scheme == "https" ? .https : .http, host: host, port: port))
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
