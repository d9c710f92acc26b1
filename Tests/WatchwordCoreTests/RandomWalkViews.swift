import WatchwordProtocol

@testable import WatchwordCore

/// What a question is about: there is one of it at a time.
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

    /// Where the login goes, and what it is; `nil` for none.
    var trial: String? { sent.map { "\(url.origin.scheme.rawValue)://\(url.origin.host)" + $0 } }

    /// As the walk writes what it gives out of the keyring.
    var isFromKeyring: Bool { authorization?.revealed.hasPrefix("Basic cmluZz") == true }

    /// What makes the connection somebody's; empty for one that is nobody's.
    func marks(at place: String) -> String {
        var marks: [String] = []
        if handshake != nil { marks.append("\(place) \(sent ?? "")") }
        if url.origin.scheme == .https, let login = proxyLogin { marks.append("tunnel \(proxy?.host ?? "") \(login)") }
        if let trustedKey { marks.append("\(place) key \(trustedKey)") }
        if let shownCertificate { marks.append("\(place) \(shownCertificate)") }
        if refusesCertificateRequest { marks.append("refuses") }
        return marks.joined(separator: ", ")
    }
}

extension RandomWalk.Fetch {
    func proxyHost(for origin: Origin, _ rule: ProxyRule) -> String? {
        switch proxy {
        case .none: nil
        case .named: "q"
        case .configured: rule.endpoint(for: origin)?.host.string
        }
    }
}

extension FetchPlan {
    var proxyName: String? {
        if case .named(let endpoint) = proxy { endpoint.host.string } else { nil }
    }
}

extension FetchCommand {
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
        case .tell: "tell"
        case .note: "note"
        case .judge: "judge"
        case .store: "store"
        case .remove: "remove"
        case .announce: "announce"
        case .closeConnections: "closeConnections"
        case .keepTrust: "keepTrust"
        case .keepGrants: "keepGrants"
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
