import WatchwordProtocol

@testable import WatchwordCore

/// The subject of a question; there is only one question about each at a time.
struct AskedOnce: Hashable {
    let space: ProtectionSpace
    let certificate: [UInt8]?

    init(_ challenge: Challenge) {
        space = challenge.protectionSpace
        certificate =
            if case .serverTrust(let facts)? = challenge.connection { facts.chain.first?.sha256 } else { nil }
    }
}

extension TransferRequest {
    /// The login at the server, however it is sent.
    var sent: String? {
        guard let handshake, handshake.target == .origin else { return authorization?.revealed }
        return handshake.scheme == .negotiate
            ? "Negotiate" : "NTLM \(handshake.user) \(handshake.password?.revealed ?? "")"
    }

    /// The target of the login and the login itself; `nil` for a request without one.
    var trial: String? { sent.map { "\(url.origin.scheme.rawValue)://\(url.origin.host)" + $0 } }

    /// Whether the login is from the keyring: the walk gives items of the keyring the user `ring`.
    var isFromKeyring: Bool { authorization?.revealed.hasPrefix("Basic cmluZz") == true }

    /// Returns the authentication state of the connection; empty if it has none.
    func connectionKey(at place: String) -> String {
        var parts: [String] = []
        if handshake != nil { parts.append("\(place) \(sent ?? "")") }
        if url.origin.scheme == .https, let login = proxyLogin { parts.append("tunnel \(proxy?.host ?? "") \(login)") }
        if let trustedKey { parts.append("\(place) key \(trustedKey)") }
        if let shownCertificate { parts.append("\(place) \(shownCertificate)") }
        if refusesCertificateRequest { parts.append("refuses") }
        return parts.joined(separator: ", ")
    }
}

extension RandomWalk.Fetch {
    /// Returns the hosts of the proxies that a request may use; `nil` for none.
    func proxyHosts(for origin: Origin, _ rule: ProxyRule) -> [String?] {
        switch proxy {
        case .none: return [nil]
        case .named: return ["q"]
        case .configured:
            let known = ProxyRule(endpoint: rule.endpoint, exceptions: rule.exceptions, rules: rule.rules)
            guard case .upstreams(let upstreams) = known.choice(for: origin, now: .zero) else { return [] }
            return upstreams.map { $0.endpoint?.host.string }
        }
    }
}

extension FetchRequest {
    var proxyName: String? {
        if case .named(let endpoint) = proxy { endpoint.host.string } else { nil }
    }
}

extension FetchCommand {
    /// Whether an event of another fetch may end the wait for this command.
    var isWait: Bool {
        switch self {
        case .wait, .findUpstreams: true
        default: false
        }
    }

    var name: String {
        switch self {
        case .transfer: "transfer"
        case .ask(_, .handler): "ask the handler"
        case .ask(_, .client): "ask the client"
        case .ask(_, .agents): "ask the agents"
        case .consult: "consult"
        case .confirm: "confirm"
        case .lookUp: "lookUp"
        case .readNetrc: "readNetrc"
        case .obtainToken: "obtainToken"
        case .findUpstreams: "findUpstreams"
        case .wait: "wait"
        case .needBody: "needBody"
        case .finish: "finish"
        case .fail: "fail"
        }
    }
}

extension FetchEffect {
    var name: String {
        switch self {
        case .notify: "notify"
        case .audit: "audit"
        case .report: "report"
        case .store: "store"
        case .remove: "remove"
        case .announce: "announce"
        case .closeConnections: "closeConnections"
        case .storeTrust: "storeTrust"
        case .storeConsents: "storeConsents"
        }
    }
}

extension FetchTable.Order {
    var name: String {
        switch self {
        case .command(let command, _): command.name
        case .effect(let effect, _): effect.name
        }
    }

    func command(of id: FetchID) -> FetchCommand? {
        if case .command(let command, id) = self { command } else { nil }
    }
}
