internal import JSONText

/// Through which proxy a fetch goes.
public enum ProxyChoice: Sendable, Equatable {
    /// The one that the configuration says, if any.
    case configured
    case none
    case named(NamedProxy)
}

/// A proxy that a fetch has named.
public struct NamedProxy: Sendable, Equatable {
    /// Without user information.
    public var url: String
    /// From the URL, percent-encoded as it came.
    public var userInfo: Secret?
    /// For this proxy only.
    public var credential: LoginCredential?

    public init(url: String, userInfo: Secret? = nil, credential: LoginCredential? = nil) {
        self.url = url
        self.userInfo = userInfo
        self.credential = credential
    }
}

/// When a server's certificate becomes a challenge.
public enum TrustMode: String, Sendable, CaseIterable {
    /// When it does not verify.
    case onFailure
    /// On every new connection, for clients that pin.
    case always
}

/// What a fetch says about TLS.
public struct TLSParams: Sendable, Equatable {
    public var trust = TrustMode.onFailure
    /// The fetch's own answer to a server that asks for a certificate.
    public var certificate: CertificateCredential?
    /// The only key that a server may show, wherever the fetch is led; then it does not matter what else is wrong with its
    /// certificate.
    public var pin: TrustCredential?

    public init() {}
}

extension ProxyChoice {
    init(_ members: Members) throws(InvalidParams) {
        self = .configured
        guard let json = members["proxy"] else { return }
        if json.string == "none" {
            self = .none
            return
        }
        guard let proxy = try? members.object("proxy") else {
            throw members.wrong("proxy", "an object with url, or \"none\"")
        }
        let text = try proxy.required("url", proxy.secret("url", maxBytes: Limits.urlBytes))
        let (url, userInfo) = URLText.split(text)
        var credential: LoginCredential?
        if let json = proxy["credential"] {
            guard case .login(let login) = try Credential(json, at: "params.proxy.credential") else {
                throw proxy.wrong("credential", "a password, a token or a header")
            }
            credential = login
        }
        self = .named(NamedProxy(url: url, userInfo: userInfo, credential: credential))
    }

    /// May hold a password: it must be written with `JSON.write(_:)`.
    var json: JSON? {
        switch self {
        case .configured: nil
        case .none: "none"
        case .named(let proxy):
            ["url": URLText.joined(proxy.url, proxy.userInfo), "credential": proxy.credential?.json]
        }
    }
}

extension TLSParams {
    init(_ members: Members) throws(InvalidParams) {
        trust = try members.choice("trust", as: TrustMode.self) ?? .onFailure
        if let json = members["certificate"] {
            guard case .certificate(let given) = try Credential(json, at: "params.tls.certificate") else {
                throw members.wrong("certificate", "a credential of type certificate")
            }
            certificate = given
        }
        if let json = members["pin"] {
            guard case .trust(let given) = try Credential(json, at: "params.tls.pin") else {
                throw members.wrong("pin", "a credential of type trust")
            }
            guard given.persistence == Persistence.none else {
                throw members.wrong("pin.persistence", "none: a pin is for its fetch")
            }
            pin = given
        }
    }

    /// May hold a key: it must be written with `JSON.write(_:)`.
    var json: JSON {
        [
            "trust": .string(trust.rawValue), "certificate": certificate?.json, "pin": pin?.json,
        ]
    }
}
