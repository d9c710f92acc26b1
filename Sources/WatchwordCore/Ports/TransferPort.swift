public import WatchwordProtocol

/// One HTTP exchange to be made: a request to one origin, with the one identity that its headers carry.
public struct TransferRequest: Sendable, Equatable {
    public var url: FetchURL
    /// A token (RFC 9110 section 9.1), sent as it is.
    public var method: String
    /// Checked against the grammar, and free of every field that the broker makes itself.
    public var headers: [HeaderField]
    /// What the client wants of the exchange.
    public var options: TransferOptions
    /// The whole value of the `Authorization` field; `nil` sends none.
    public var authorization: Secret?
    public var body: RequestBody?
    /// The proxy that it goes through; `nil` for none.
    public var proxy: ProxyRequest?
    /// Addresses to which no connection is made, and over none that is there already anything sent.
    public var deniedAddresses = AddressRules()
    /// For the whole exchange, name resolution and connecting included.
    public var timeout: Duration
    /// What is kept of the response in memory counts there. Where it has no room, a body goes on its way, or into a file, though
    /// it is smaller than `options.delivery` says.
    public var allowance: Allowance?
    /// The quota for what is kept of the response in temporary files; `nil` for none.
    public var disk: Allowance?
    public var identity = ConnectionIdentity.none
    public var trust = TrustPolicy.verify
    /// Shown when the server asks; only together with an identity.
    public var clientCertificate: ClientCertificate?
    /// A server that asks for a certificate, where there is none to show, ends the exchange before the request is sent, with
    /// cause `clientCertificateRequired`. Only together with an identity.
    public var refusesCertificateRequest = false
    /// Makes a connection even where one is kept open, so that the login is made again.
    public var needsNewConnection = false
    /// Only together with an identity, and in place of `authorization` or that of the proxy.
    public var handshake: Handshake?
    /// What a response has to prove whose body is handed over on its way, or kept elsewhere: wrong, it ends with the cause
    /// `serverProofWrong`. That of one which comes with its body is for whoever gets it.
    public var proofs: [ResponseProof] = []
    /// That of the proxy, where `handshake` is that of the origin.
    public var proxyHandshake: Handshake?

    public init(
        url: FetchURL, method: String, headers: [HeaderField] = [], authorization: Secret? = nil,
        body: RequestBody? = nil, proxy: ProxyRequest? = nil, timeout: Duration, _ options: TransferOptions
    ) {
        self.url = url
        self.method = method
        self.headers = headers
        self.authorization = authorization
        self.body = body
        self.proxy = proxy
        self.timeout = timeout
        self.options = options
    }
}

/// A response, whatever its status.
public struct TransferResponse: Sendable, Equatable {
    public var status: Int
    /// The reason phrase; empty where there is none.
    public var reason = ""
    /// `1.0`, `1.1` or `2`.
    public var httpVersion: String
    /// Of the final response: those of interim (1xx) responses are dropped.
    public var headers: [HeaderField]
    /// The fields that came after the body (RFC 9110 section 6.5); none before a body that is on its way.
    public var trailers: [HeaderField] = []
    /// The body was sent in a content coding, which was undone.
    public var isDecoded = false
    /// The whole body; empty when `openBody` is there.
    public var body: [UInt8]
    /// Of the allowance of the request: held as long as `body` is.
    public var share: Allowance.Share?
    /// The body, where it is still on its way.
    public var openBody: OpenBody?
    /// A 407 that the proxy in use has answered itself. No other 407 is about a proxy. In answer to CONNECT its body is lost.
    public var isFromProxy = false
    /// That the server has asked for a certificate when this connection was made, if it has.
    public var clientCertificateRequest: ClientCertificateRequest?
    /// The certificate that this connection was ready to show.
    public var clientCertificate: CertificateContent?
    /// Of a 401 with Negotiate over TLS: the hash of the server's certificate, with which a login is bound to this channel
    /// (`tls-server-end-point`, RFC 5929 section 4).
    public var serverEndPoint: [UInt8]?
    /// It came over a connection that an earlier transfer had made, and logged in where its identity says so.
    public var usedKeptConnection = false
    /// Of a request whose body comes through a socket: whether it can be sent again.
    public var requestBody = RequestBodyState.untouched

    public init(status: Int, httpVersion: String = "1.1", headers: [HeaderField] = [], body: [UInt8] = []) {
        self.status = status
        self.httpVersion = httpVersion
        self.headers = headers
        self.body = body
    }
}

/// Why an exchange gave no response.
public struct TransferFailure: Error, Sendable, Equatable {
    public enum Kind: String, Sendable, CaseIterable {
        case nameNotResolved, cannotConnect, timedOut, connectionLost, serverNotTrusted, tlsFailed
        case bodyTooLarge, headersTooLarge, malformedResponse
        /// The request's body ended too early, or did not come.
        case requestBodyIncomplete
        /// It would have to be sent again, on another connection: the one that was kept from before has ended. Nothing was kept of it.
        case requestBodyGone
        /// The task that waited was cancelled, or the engine was shut down.
        case cancelled
        /// The temporary files of the client, or of all clients, use their whole quota.
        case quotaExceeded
        case outOfMemory, internalError
    }

    /// What lies behind the kind, where somebody can do something about it.
    public enum Cause: Sendable, Equatable {
        /// The proxy's name is unknown, or nothing answers there in time.
        case proxyUnreachable
        /// It answered, but will not connect to the origin: the status of its answer to CONNECT, or `nil` for SOCKS and for what
        /// is no such answer.
        case proxyRefused(status: Int?)
        /// SOCKS: no login was given and it wants one, or it was wrong.
        case proxyLoginRefused
        /// SOCKS: the user or the password is longer than 255 bytes (RFC 1929). Nothing was sent.
        case proxyLoginTooLong
        /// No protected connection to the proxy, or its certificate does not verify.
        case proxyTLSFailed
        /// The file is missing, or holds no certificate or no key.
        case clientCertificateUnreadable
        /// The passphrase of the key is wrong, or missing.
        case clientKeyPassphraseWrong
        case clientKeyMismatch
        /// The token was given too many wrong PINs, or says that the next one locks it. This one was not tried.
        case tokenPINNotTried
        /// Others can get at the file that holds the key. Nothing was sent.
        case clientKeyExposed
        /// A file or a token holds another certificate than the one that was accepted. Nothing was sent.
        case clientCertificateChanged
        /// The server has looked at the certificate and ended the connection.
        case clientCertificateRefused
        /// The server does not go on without a certificate.
        case clientCertificateRequired
        /// The only addresses of the server or the proxy are among `TransferRequest.deniedAddresses`. Nothing was sent.
        case addressDenied
        /// Negotiate: there is no Kerberos ticket for the service, and none can be had. Nothing was sent.
        case noTicket
        /// The ticket names another certificate than the connection shows, which has this hash. Nothing was sent.
        case channelChanged(serverEndPoint: [UInt8]?)
        /// Negotiate: the answer to the ticket is not from the service that the ticket is for. Digest: the proof at the end of
        /// the response is wrong.
        case serverProofWrong
        /// NTLM: the user, the domain or the password holds characters beyond ISO 8859-1. Nothing was sent.
        case charactersUnsupported
        /// NTLM: the challenge would have led to a response weaker than NTLMv2, or cannot be read. It was not answered.
        case ntlmChallengeUnusable
        /// NTLM: the login would have to begin again, because the connection ended or what was sent is ignored.
        case ntlmNotContinued
        /// So many logins wait for a file, a token or a ticket that no more are begun.
        case tooManyWaiting
    }

    public var kind: Kind
    /// For people: what happened, to what. Never holds a header's value.
    public var detail: String
    public var cause: Cause?
    /// What was wrong on the wire, in more detail than `kind`, where the adapter knows.
    public var wireCause: FailureCause?
    /// For kind `serverNotTrusted` what the server has shown, for cause `proxyTLSFailed` the proxy.
    public var serverTrust: ServerTrustFacts?
    /// That the server has asked for a certificate, if it has.
    public var clientCertificateRequest: ClientCertificateRequest?
    /// Of a request whose body comes through a socket: whether it can be sent again.
    public var requestBody = RequestBodyState.untouched

    public init(_ kind: Kind, _ detail: String, cause: Cause? = nil, wireCause: FailureCause? = nil) {
        self.kind = kind
        self.detail = detail
        self.cause = cause
        self.wireCause = wireCause
    }
}

/// What an engine can say of itself, for `server/status`.
public struct TransferFigures: Sendable, Equatable {
    /// The library and its version, for people.
    public var engine: String
    public var running: Int
    public var finished: Int
    public var connectionsOpened: Int
    public var connectionsReused: Int

    public init(engine: String, running: Int, finished: Int, connectionsOpened: Int, connectionsReused: Int) {
        self.engine = engine
        self.running = running
        self.finished = finished
        self.connectionsOpened = connectionsOpened
        self.connectionsReused = connectionsReused
    }
}

/// Names one transfer of a port; never used again.
public struct TransferID: Hashable, Sendable {
    public let value: Int

    public init(value: Int) { self.value = value }
}

/// The way out to the network. An adapter makes exchanges; it never follows, retries or authenticates.
///
/// It lives on the executor of whoever uses it: every call is made there, and every completion is called there. That of `start`
/// never comes before the call that has brought it about has returned; the others may, and their receivers do not call back. Completions instead of `async`: a continuation that is resumed goes through
/// the global pool, which costs a small fetch more than all the rest.
public protocol TransferPort: Sendable {
    typealias Outcome = Result<TransferResponse, TransferFailure>
    /// How the way of an open body ended: with its size when all of it has been taken.
    typealias Delivery = Result<Int, TransferFailure>

    /// Starts one exchange. `completion` is called exactly once.
    func start(_ request: TransferRequest, completion: @escaping @Sendable (Outcome) -> Void) -> TransferID

    /// Ends the transfer within milliseconds with `.cancelled`, if it has not ended yet. An open body is given up.
    func cancel(_ id: TransferID)

    /// Says what becomes of an open body: `completion` is called once, when all of it has been read or written to what was
    /// attached, or when that cannot be. Nobody who reads for long is such a reason.
    func follow(_ id: TransferID, completion: @escaping @Sendable (Delivery) -> Void)

    /// The next bytes of an open body, at most `maxBytes`; waits until there are some, or its end. One reader at a time.
    func read(
        _ id: TransferID, maxBytes: Int, completion: @escaping @Sendable (Result<BodyPart, TransferFailure>) -> Void)

    /// Writes the rest of an open body to a connected socket, and then closes it, whatever happens.
    /// - Parameter socket: a descriptor that the port owns from now on.
    func attach(_ id: TransferID, socket: Int32)

    /// Makes a place for a request's body that comes through a socket. It is there until it is released.
    /// - Parameters:
    ///   - size: how many bytes it has; `nil` when nobody knows.
    ///   - keepsCopy: so that it can be sent again, as long as there is room.
    ///   - memory: of which a copy that is not in a file takes no more than half; `nil` for no quota.
    ///   - disk: the quota for a copy in a temporary file; `nil` for none.
    func makeSource(size: Int?, keepsCopy: Bool, memory: Allowance?, disk: Allowance?) -> BodySourceID

    /// The body comes through `socket`, to its end.
    /// - Parameter socket: a descriptor that the port owns from now on.
    func attach(_ source: BodySourceID, socket: Int32)

    func release(_ source: BodySourceID)

    /// Makes an open body of bytes that are complete.
    func open(_ body: [UInt8]) -> TransferID

    /// How far the transfer has come; `nil` when it is not known any more.
    func progress(of id: TransferID, completion: @escaping @Sendable (TransferProgress?) -> Void)

    /// Closes the connections of an identity: idle ones at once, those in use when their transfers have ended. Later
    /// transfers of the identity make new ones.
    func forget(_ identity: ConnectionIdentity)

    var figures: TransferFigures { get }
}

extension TransferPort {
    /// A place for a request's body whose copy has no quota.
    public func makeSource(size: Int?, keepsCopy: Bool) -> BodySourceID {
        makeSource(size: size, keepsCopy: keepsCopy, memory: nil, disk: nil)
    }

    /// Nothing to close where there are no connections.
    public func forget(_ identity: ConnectionIdentity) {}
}
