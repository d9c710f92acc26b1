internal import JSONText

/// The proxy that a fetch uses.
public enum ProxyChoice: Sendable, Equatable {
    /// The configured proxy, if any.
    case configured
    case none
    indirect case named(NamedProxy)
}

/// A proxy that a fetch names.
public struct NamedProxy: Sendable, Equatable {
    /// The URL without user information.
    public var url: String
    /// The user information of the URL, still percent-encoded.
    public var userInfo: Secret?
    /// A credential for this proxy only.
    public var credential: LoginCredential?

    public init(url: String, userInfo: Secret? = nil, credential: LoginCredential? = nil) {
        self.url = url
        self.userInfo = userInfo
        self.credential = credential
    }
}

/// The condition under which a server certificate causes a challenge.
public enum TrustMode: String, Sendable, CaseIterable {
    /// The certificate does not verify.
    case onFailure
    /// The connection is new, whether or not the certificate verifies; for clients that pin keys.
    case always
}

/// The TLS parameters of a fetch.
public struct TLSParams: Sendable, Equatable {
    public var trust = TrustMode.onFailure
    /// The client certificate for a server that requests one.
    public var certificate: CertificateCredential?
    /// The only server key that the fetch accepts, also after redirects. Other problems of a certificate with this key are
    /// ignored.
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
        if let given = try proxy.value("credential", as: Credential.self) {
            guard case .login(let login) = given else {
                throw proxy.wrong("credential", "a password, a token or a header")
            }
            credential = login
        }
        self = .named(NamedProxy(url: url, userInfo: userInfo, credential: credential))
    }

    /// May contain a password: serialize it with `JSON.write(_:)`.
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
        if let credential = try members.value("certificate", as: Credential.self) {
            guard case .certificate(let given) = credential else {
                throw members.wrong("certificate", "a credential of type certificate")
            }
            certificate = given
        }
        if let credential = try members.value("pin", as: Credential.self) {
            guard case .trust(let given) = credential else {
                throw members.wrong("pin", "a credential of type trust")
            }
            guard given.persistence == Persistence.none else {
                throw members.wrong("pin.persistence", "none: a pin applies only to its fetch")
            }
            pin = given
        }
    }

    /// May contain a private key: serialize it with `JSON.write(_:)`.
    var json: JSON {
        [
            "trust": .string(trust.rawValue), "certificate": certificate?.json, "pin": pin?.json,
        ]
    }
}
