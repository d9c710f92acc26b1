public import WatchwordProtocol

/// Whose connections a transfer may use. What marks a connection (an NTLM or Negotiate login, a client certificate, a trust
/// exception, a tunnel for which a proxy was given a credential) has a number of its own, so that nobody else gets it.
public enum ConnectionIdentity: Hashable, Sendable {
    /// The connections that carry no identity; everybody may use them.
    case none
    /// The connections of one identity; HTTP/1.1 only where a handshake has logged them in. The number is the core's to choose.
    case number(Int)
}

/// The proxy that an exchange goes through. Nothing of it is ever sent to the origin.
public struct ProxyRequest: Sendable, Equatable {
    public enum Kind: String, Sendable {
        /// `https` is HTTP over TLS to the proxy; `socks5h` leaves name resolution to it (RFC 1928).
        case http, https, socks5h
    }

    public var kind: Kind
    /// A name or an address; an IPv6 address with its brackets.
    public var host: String
    public var port: Int
    /// The whole value of the `Proxy-Authorization` field. A tunnel stays authorised: give each such credential an identity.
    public var authorization: Secret?
    /// For SOCKS5 (RFC 1929).
    public var user: Secret?
    public var password: Secret?

    public init(
        kind: Kind, host: String, port: Int, authorization: Secret? = nil, user: Secret? = nil, password: Secret? = nil
    ) {
        self.kind = kind
        self.host = host
        self.port = port
        self.authorization = authorization
        self.user = user
        self.password = password
    }
}

/// A login that belongs to the connection, and that the adapter makes by itself: what comes of it is the last response.
///
/// NTLM takes several rounds. Negotiate is Kerberos, never NTLM in its name, with a service ticket for `HTTP/` and the host as
/// the URL spells it; it takes one, and a server that wants more gives a 401.
public struct Handshake: Sendable, Equatable {
    public enum Scheme: String, Sendable { case ntlm, negotiate }
    public enum Target: String, Sendable { case origin, proxy }

    public var scheme: Scheme
    public var target: Target
    /// For NTLM. Negotiate uses the tickets of the user that the broker runs as.
    public var user: ExactText
    /// Empty for none.
    public var domain: ExactText
    public var password: Secret?
    /// Negotiate: the server gets a ticket with which it can act for the user.
    public var delegates: Bool
    /// Negotiate: what the ticket is bound to; see `TransferResponse`.
    public var serverEndPoint: [UInt8]?

    public init(
        scheme: Scheme, target: Target, user: ExactText = "", domain: ExactText = "", password: Secret? = nil,
        delegates: Bool = false, serverEndPoint: [UInt8]? = nil
    ) {
        self.delegates = delegates
        self.serverEndPoint = serverEndPoint
        self.scheme = scheme
        self.target = target
        self.user = user
        self.domain = domain
        self.password = password
    }
}

/// What is shown to a server that asks for a certificate.
public struct ClientCertificate: Sendable, Equatable {
    /// Bytes that may hold a key are a secret.
    public enum Material: Sendable, Equatable {
        case bytes(Secret)
        case file(String)
        /// An object on a token, as RFC 7512 writes it. The attribute `token` or `serial` must be there, so that the PIN goes to
        /// no other token. The adapter knows the module: a URI that names one is refused, for loading it would run its code.
        /// `passphrase` is the PIN, which the URI must not hold. Tokens lock themselves after a few wrong PINs: one that was
        /// refused is not tried a second time in a row.
        case token(uri: String)
    }

    /// PEM (the leaf first, then its issuers; its key too when `privateKey` is `nil`), or PKCS#12.
    public var certificate: Material
    /// PEM, or an object on a token; `nil` when `certificate` holds it, or the token under the same URI.
    public var privateKey: Material?
    public var passphrase: Secret?
    /// The content that was accepted before under the same name; other content fails with cause `clientCertificateChanged`.
    /// `nil` for any.
    public var expectedContent: CertificateContent?

    public init(certificate: Material, privateKey: Material? = nil, passphrase: Secret? = nil) {
        self.certificate = certificate
        self.privateKey = privateKey
        self.passphrase = passphrase
    }
}

/// That the server has asked for a certificate (RFC 8446 section 4.3.2).
public struct ClientCertificateRequest: Sendable, Equatable {
    /// The issuers that it accepts, as RFC 4514 writes them; empty when it does not say.
    public var distinguishedNames: [String]

    public init(distinguishedNames: [String]) { self.distinguishedNames = distinguishedNames }
}
