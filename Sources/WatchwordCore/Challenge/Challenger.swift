internal import WatchwordProtocol

/// Who challenges. What a server was told is nothing to a proxy of the same name, and the other way round (semantics rule 19).
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

    /// For people.
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
    /// That of a Basic challenge without a realm; in SOCKS there are none.
    var lacksRealm: Bool { authenticationMethod == .httpBasic && realm == nil && proxyType != .socks }
}

enum Loopback {
    /// Never leaves the machine (RFC 6761 section 6.3, RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3).
    static func isLoopback(_ host: ExactText) -> Bool {
        host == "localhost" || host.hasSuffix(".localhost") || host == "[::1]"
            || (host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) })
    }
}

extension Origin {
    /// Never leaves the machine.
    var isLoopback: Bool { Loopback.isLoopback(host) }
}
