public import WatchwordProtocol

/// The request of one HTTP exchange with one origin.
public struct TransferRequest: Sendable, Equatable {
    public var url: FetchURL
    /// A token (RFC 9110 section 9.1), sent unchanged.
    public var method: String
    /// Validated fields, without the fields that the broker sets itself.
    public var headers: [HeaderField]
    /// Shared with the fetch, unless this exchange changes them.
    @Indirect public var options: TransferOptions
    /// The value of the `Authorization` field; `nil` for none.
    public var authorization: Secret?
    /// The cookies of this fetch, from `TransferResponse.cookies`. The adapter sends those that match the URL, before those
    /// of the field `Cookie` in `headers` (RFC 6265 section 5.4).
    public var cookies: [Secret] = []
    public var body: RequestBody?
    /// The proxy to use; `nil` for none.
    @IndirectOptional public var proxy: ProxyRequest?
    /// The addresses to which no connection is made; existing connections to them are not used either.
    public var deniedAddresses = AddressRules()
    /// The time limit for the whole exchange, including name resolution and connecting.
    public var timeout: Duration
    public var identity = ConnectionIdentity.none
    public var trust = TrustPolicy.verify
    /// Used when the server requests a certificate; requires an identity.
    @IndirectOptional public var clientCertificate: ClientCertificate?
    /// Whether to fail before the request is sent, with cause `clientCertificateRequired`, if the server requests a
    /// certificate and there is none. Requires an identity.
    public var refusesCertificateRequest = false
    /// Whether to open a new connection even if one can be reused, so that the login is performed again.
    public var needsNewConnection = false
    /// The connection-level login. Requires an identity, and replaces `authorization` or `proxy.authorization`.
    @IndirectOptional public var handshake: Handshake?
    /// The Digest proofs to check for a response whose body is streamed, stored in a file or decoded; the transfer fails with
    /// cause `serverProofWrong` if one is wrong. For any other response the caller checks the proofs.
    public var proofs: [ResponseProof] = []
    /// The connection-level login at the proxy, if `handshake` is for the origin.
    @IndirectOptional public var proxyHandshake: Handshake?

    public init(
        url: FetchURL, method: String, headers: [HeaderField] = [], authorization: Secret? = nil,
        body: RequestBody? = nil, proxy: ProxyRequest? = nil, timeout: Duration, _ options: Indirect<TransferOptions>
    ) {
        self.url = url
        self.method = method
        self.headers = headers
        self.authorization = authorization
        self.body = body
        self.proxy = proxy
        self.timeout = timeout
        _options = options
    }
}

/// A request on its way to the transfer adapter. Copying the request itself is expensive.
public typealias SharedRequest = Boxed<TransferRequest>

extension SharedRequest {
    /// Whether the request goes through a connection that the proxy makes for it, unread.
    public var usesTunnel: Bool {
        guard let kind = value.proxy?.kind else { return false }
        return value.url.origin.scheme == .https || kind == .socks5h
    }
}

/// The quotas for one response; `nil` for none.
public struct ResponseQuotas: Sendable {
    /// The quota for the response in memory. Once it is used up, a body is streamed or written to a file even below the
    /// threshold of `TransferOptions.delivery`.
    public var memory: Quota?
    /// The quota for the response in temporary files.
    public var disk: Quota?

    public init(memory: Quota? = nil, disk: Quota? = nil) { (self.memory, self.disk) = (memory, disk) }
}

/// A response with any status.
public struct TransferResponse: Sendable, Equatable {
    public var status: Int
    /// The reason phrase; may be empty.
    public var reason = ""
    /// `1.0`, `1.1` or `2`.
    public var httpVersion: String
    /// The fields of the final response, without those of interim (1xx) responses.
    public var headers: HeaderBlock
    /// The fields after the body (RFC 9110 section 6.5); empty while the body is still being received.
    public var trailers = HeaderBlock()
    /// Whether a content coding of the body was decoded.
    public var isDecoded = false
    /// The whole body; empty if there is an `openBody`.
    public var body: [UInt8]
    /// The share of `body` in the usage of the memory quota.
    public var share: Quota.Share?
    /// The body, if it is still being received.
    public var openBody: OpenBody?
    /// Whether this 407 is from the proxy in use; any other 407 is not a challenge of a proxy. The body of a response
    /// to CONNECT is not available.
    public var isFromProxy = false
    /// The server's request for a client certificate when this connection was made, if any.
    public var clientCertificateRequest: ClientCertificateRequest?
    /// The client certificate that was available to this connection, requested or not.
    public var clientCertificate: CertificateContent?
    /// For a 401 with Negotiate over TLS: the hash of the server's certificate that binds a login to this channel
    /// (`tls-server-end-point`, RFC 5929 section 4).
    public var serverEndPoint: [UInt8]?
    /// Whether the connection was reused: made by an earlier transfer and, if its identity has a login, authenticated.
    public var reusedConnection = false
    /// For a response that may lead to another request (401, 407 or 3xx): why its body is not complete.
    public var bodyFailure: TransferFailure?
    /// For a streamed request body: whether it can be sent again.
    public var requestBody = RequestBodyState.untouched
    /// All cookies of the fetch after a challenge or redirect that has set one: those of the request, and the new ones, in
    /// a form of the adapter. `nil` if there is nothing new.
    public var cookies: [Secret]?

    public init(status: Int, httpVersion: String = "1.1", headers: HeaderBlock = [], body: [UInt8] = []) {
        self.status = status
        self.httpVersion = httpVersion
        self.headers = headers
        self.body = body
    }
}

/// What happens in a transfer before its response.
public enum TransferEvent: Sendable, Equatable {
    /// The origin has sent an interim response with a status from 102 on.
    case interim(TransferResponse)
    /// The request is about to be sent on a connection that an earlier transfer has made. Reported only if that has
    /// logged in, or leads through a tunnel.
    case reusesConnection
    /// The proxy has opened a tunnel for this transfer. The server's side may still fail.
    case opensTunnel
}

/// The reason why an exchange failed.
public struct TransferFailure: Error, Sendable, Equatable {
    public enum Kind: String, Sendable, CaseIterable {
        case nameNotResolved, cannotConnect, timedOut, connectionLost, serverNotTrusted, tlsFailed
        case bodyTooLarge, headersTooLarge, malformedResponse
        /// The request's body ended too early or never arrived.
        case requestBodyIncomplete
        /// The reused connection ended, so the request's body would have to be sent again, but no copy exists.
        case requestBodyGone
        /// The transfer was cancelled, or the engine was shut down.
        case cancelled
        /// The quota for temporary files of the connection, its program, or all programs is used up.
        case quotaExceeded
        case outOfMemory, internalError
    }

    /// A more specific cause, which the client or its user can act on.
    public enum Cause: Sendable, Equatable {
        /// The name of the proxy cannot be resolved, or the proxy does not respond in time.
        case proxyUnreachable
        /// The proxy responded, but refused to connect to the origin: the status of its answer to CONNECT, or `nil` for
        /// SOCKS and for an invalid answer.
        case proxyRefused(status: Int?)
        /// SOCKS: the proxy requires a login, and none was supplied or it was wrong.
        case proxyLoginRefused
        /// SOCKS: the user or the password is longer than 255 bytes (RFC 1929). Nothing was sent.
        case proxyLoginTooLong
        /// There is no TLS connection to the proxy, or its certificate does not verify.
        case proxyTLSFailed
        /// The file is missing, or contains no certificate or no key.
        case clientCertificateUnreadable
        /// The passphrase of the key is wrong or missing.
        case clientKeyPassphraseWrong
        case clientKeyMismatch
        /// Too many wrong PINs were sent to the token, or the token reports that one more locks it. This PIN was not
        /// tried.
        case tokenPINNotTried
        /// Other users can access the file of the key. Nothing was sent.
        case clientKeyExposed
        /// The file or token contains a certificate other than the accepted one. Nothing was sent.
        case clientCertificateChanged
        /// The server received the certificate and ended the connection.
        case clientCertificateRefused
        /// The server does not continue without a certificate.
        case clientCertificateRequired
        /// All addresses of the server or the proxy are among `TransferRequest.deniedAddresses`. Nothing was sent.
        case addressDenied
        /// Negotiate: there is no Kerberos ticket for the service, and none can be obtained. Nothing was sent.
        case noTicket
        /// Negotiate: the ticket is bound to a certificate other than that of the connection, which has the hash
        /// `serverEndPoint`. Nothing was sent.
        case channelChanged(serverEndPoint: [UInt8]?)
        /// Negotiate: the answer to the ticket is not from the service of the ticket. Digest: the proof at the end of
        /// the response is wrong.
        case serverProofWrong
        /// NTLM: the user, the domain or the password contains characters beyond ISO 8859-1. Nothing was sent.
        case charactersUnsupported
        /// NTLM: the challenge is malformed, or would lead to a response weaker than NTLMv2. It was not answered.
        case ntlmChallengeUnusable
        /// NTLM: the login would have to start again, because the connection ended or the server ignores the messages.
        case ntlmNotContinued
        /// The connection that had logged in has ended before the response, and `reusesConnection` was reported: a new one
        /// would log in again.
        case loginConnectionEnded
        /// Too many logins wait for a file, a token or a ticket.
        case tooManyWaiting
    }

    public var kind: Kind
    /// A message for people: the failure and what it concerns. Never contains the value of a header field.
    public var detail: String
    public var cause: Cause?
    /// The failure of the connection or the protocol, in more detail than `kind`, if known.
    public var wireCause: FailureCause?
    /// The certificate of the server for kind `serverNotTrusted`, or of the proxy for cause `proxyTLSFailed`.
    public var serverTrust: ServerTrustFacts?
    /// The server's request for a client certificate, if any.
    public var clientCertificateRequest: ClientCertificateRequest?
    /// For a streamed request body: whether it can be sent again.
    public var requestBody = RequestBodyState.untouched
    /// Whether a part of the request, or of an unanswered request for a tunnel, was sent on any connection.
    public var hasSentRequest = false
    /// SOCKS: whether the login was sent, perhaps, and the proxy has not answered it.
    public var hasUnansweredLogin = false

    public init(_ kind: Kind, _ detail: String, cause: Cause? = nil, wireCause: FailureCause? = nil) {
        self.kind = kind
        self.detail = detail
        self.cause = cause
        self.wireCause = wireCause
    }
}

/// The statistics of an engine, for `server/status`.
public struct TransferStatistics: Sendable, Equatable {
    /// The name and version of the library, for people.
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

/// Identifies one transfer of a port; never reused.
public struct TransferID: Hashable, Sendable {
    public let value: Int

    public init(value: Int) { self.value = value }
}

/// The interface to the network. An adapter makes single exchanges: it never follows redirects or retries, and
/// authenticates only as the request specifies.
///
/// All calls are made on the executor of the caller, and all completions are called there. The completion of `start` is
/// never called before the call that causes it has returned. Any other completion may be called before its call
/// returns, and must not call the port. Completions are used rather than `async`, because resuming a continuation goes
/// through the global pool, which costs more than the rest of a small fetch.
public protocol TransferPort: Sendable {
    typealias Outcome = Result<TransferResponse, TransferFailure>
    /// The end of an open body: its size in bytes, if all of it was read or written.
    typealias Delivery = Result<Int, TransferFailure>
    typealias Report = @Sendable (TransferEvent) -> Void

    /// Starts one exchange. `completion` is called exactly once.
    /// - Parameter report: called before it for what happens until the response.
    func start(
        _ request: SharedRequest, _ quotas: ResponseQuotas, report: @escaping Report,
        completion: @escaping @Sendable (Outcome) -> Void
    ) -> TransferID

    /// Ends the transfer within milliseconds with `.cancelled`, unless it has ended. An open body is dropped.
    func cancel(_ id: TransferID)

    /// Reports the end of an open body. `completion` is called once: when the whole body has been read or written to
    /// the attached socket, or when that failed, for example because the reader was idle for too long.
    func follow(_ id: TransferID, completion: @escaping @Sendable (Delivery) -> Void)

    /// Returns the next bytes of an open body, at most `maxBytes`; waits until some have been received or the body
    /// ends. There can be only one reader at a time.
    func read(
        _ id: TransferID, maxBytes: Int, completion: @escaping @Sendable (Result<BodyPart, TransferFailure>) -> Void)

    /// Writes the rest of an open body to a connected socket, and closes the socket in any case.
    /// - Parameter socket: a descriptor that the port owns from now on.
    func attach(_ id: TransferID, socket: Int32)

    /// Makes a source for a request body that is received through a socket. It exists until it is released.
    /// - Parameter size: the number of bytes; `nil` if unknown.
    /// - Parameter storesCopy: whether to store a copy, as long as the quotas allow it, so that the body can be sent
    ///   again.
    /// - Parameter memory: the quota for a copy in memory, which uses at most half of it; `nil` for no quota.
    /// - Parameter disk: the quota for a copy in a temporary file; `nil` for none.
    func makeSource(size: Int?, storesCopy: Bool, memory: Quota?, disk: Quota?) -> BodySourceID

    /// Receives the body through `socket`, up to its end.
    /// - Parameter socket: a descriptor that the port owns from now on.
    func attach(_ source: BodySourceID, socket: Int32)

    func release(_ source: BodySourceID)

    /// Makes an open body from bytes in memory.
    func open(_ body: [UInt8]) -> TransferID

    /// Returns the connected socket of a transfer with `options.opensTunnel` that has succeeded; the caller takes
    /// ownership. `nil` if it was taken or cancelled before.
    func takeTunnel(_ id: TransferID) -> Int32?

    /// Reports the progress of the transfer; `nil` if it is unknown.
    func progress(of id: TransferID, completion: @escaping @Sendable (TransferProgress?) -> Void)

    /// Closes the connections of an identity: idle ones at once, others when their transfers have ended. Later
    /// transfers of the identity open new ones.
    func forget(_ identity: ConnectionIdentity)

    var figures: TransferStatistics { get }
}

extension TransferPort {
    /// Starts one exchange whose events are dropped.
    public func start(
        _ request: SharedRequest, _ quotas: ResponseQuotas, completion: @escaping @Sendable (Outcome) -> Void
    ) -> TransferID { start(request, quotas, report: { _ in }, completion: completion) }
}
