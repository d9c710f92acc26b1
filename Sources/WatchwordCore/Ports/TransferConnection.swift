public import WatchwordProtocol

/// Selects the connections that a transfer may use. Each authentication state (an NTLM or Negotiate login, a client
/// certificate, a trust exception, a proxy login of a tunnel) has a number of its own, so that only transfers with the
/// same state share a connection.
public enum ConnectionIdentity: Hashable, Sendable {
    /// Connections without an identity, shared by all transfers.
    case none
    /// The connections of one identity, numbered by the caller. With a connection-level login they use HTTP/1.1 only.
    case number(Int)
}

/// The proxy of an exchange. No value of this type is ever sent to the origin server.
public struct ProxyRequest: Sendable, Equatable {
    public enum Kind: String, Sendable {
        /// `https` is HTTP over TLS to the proxy; with `socks5h` the proxy resolves names (RFC 1928).
        case http, https, socks5h
    }

    public var kind: Kind
    /// A name or an address; an IPv6 address with its brackets.
    public var host: String
    public var port: Int
    /// The value of the `Proxy-Authorization` field. A tunnel stays authenticated, so each value needs an identity of
    /// its own.
    public var authorization: Secret?
    /// The user name, for SOCKS5 only (RFC 1929).
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

/// A connection-level login, which the adapter performs itself; the caller gets the last response.
///
/// NTLM takes several rounds. Negotiate means Kerberos, never NTLM, with a ticket for the service `HTTP/` and the host
/// of the URL. It takes one round; if a server requires more, the caller gets its 401.
public struct Handshake: Sendable, Equatable {
    public enum Scheme: String, Sendable { case ntlm, negotiate }
    public enum Target: String, Sendable { case origin, proxy }

    public var scheme: Scheme
    public var target: Target
    /// The user name, for NTLM only. Negotiate uses the Kerberos tickets of the user that the broker runs as.
    public var user: ExactText
    /// Empty if there is none.
    public var domain: ExactText
    public var password: Secret?
    /// For Negotiate: whether the user's ticket is delegated to the server, which can then act as the user.
    public var delegates: Bool
    /// For Negotiate: the certificate hash that the ticket is bound to; see `TransferResponse.serverEndPoint`.
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

/// The certificate to use when a server requests one.
public struct ClientCertificate: Sendable, Equatable {
    /// Bytes may contain a key and are therefore a secret.
    public enum Material: Sendable, Equatable {
        case bytes(Secret)
        case file(String)
        /// An object on a token, as a URI of RFC 7512. It needs the attribute `token` or `serial`, so that the PIN goes
        /// to no other token. A URI that names a module is refused, because loading the module would run its code; the
        /// adapter chooses the module. The PIN is in `passphrase`, never in the URI. Tokens lock themselves after a few
        /// wrong PINs, so a PIN that was just refused is not tried again.
        case token(uri: String)
    }

    /// PEM (the leaf first, then its issuers, and the key if `privateKey` is `nil`), or PKCS#12.
    public var certificate: Material
    /// PEM, or an object on a token; `nil` if `certificate` contains it, or if the token has it under the same URI.
    public var privateKey: Material?
    public var passphrase: Secret?
    /// The content accepted earlier under the same name; other content fails with cause `clientCertificateChanged`.
    /// `nil` accepts any content.
    public var expectedContent: CertificateContent?

    public init(certificate: Material, privateKey: Material? = nil, passphrase: Secret? = nil) {
        self.certificate = certificate
        self.privateKey = privateKey
        self.passphrase = passphrase
    }
}

/// A server's request for a client certificate (RFC 8446 section 4.3.2).
public struct ClientCertificateRequest: Sendable, Equatable {
    /// The issuers that the server accepts, in the form of RFC 4514; empty if it names none.
    public var distinguishedNames: [String]

    public init(distinguishedNames: [String]) { self.distinguishedNames = distinguishedNames }
}

/// The condition under which a server's certificate is accepted.
public enum TrustPolicy: Sendable, Equatable {
    /// The certificate verifies.
    case verify
    /// The key of the leaf certificate has this hash; other problems are ignored. Requires an identity.
    case leaf(spkiSha256: [UInt8])
    /// Never: a new connection is made, and fails with the facts about the certificate even if it verifies.
    case ask
}
