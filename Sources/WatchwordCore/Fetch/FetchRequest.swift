public import WatchwordProtocol

/// What a client has requested, checked: the request itself, its options, and who may answer its challenges.
///
/// Composed by the caller of `FetchTable.add`, which completes it with the fetch and its client. From then on it never
/// changes, and all parts of the fetch share it; what one attempt changes is in its `TransferRequest`.
public struct FetchRequest: Sendable {
    /// The proxy that a fetch uses.
    public enum Proxy: Sendable, Equatable {
        case configured
        case none
        case named(ProxyEndpoint)
    }

    /// The part of a fetch's login to its origin that is not the broker's.
    public enum OriginLogin: Sendable, Equatable {
        /// The broker logs in.
        case broker
        /// The program logs in: the value of its `Authorization` field is sent, if it has one, and the origin's challenges
        /// are its responses.
        case program(Secret?)
        /// The program speaks to the origin through a tunnel; only the proxy is logged in to.
        case tunnel
    }

    /// Set when the fetch is added to the table, like the following three.
    public internal(set) var id = FetchID(number: 0)
    var client = AuthenticationQueues.Client(tag: ClientTag(value: 0), program: nil)
    /// The stored credentials that this fetch may use.
    var access = Access(nil, client: ClientTag(value: 0), sharing: .user)
    /// The number of the last refusal logged before this fetch started; only later ones apply to it.
    var refusalBaseline = 0
    public var url: FetchURL
    public var method: String
    public var headers: [HeaderField]
    @Indirect public var options: TransferOptions
    /// `init` sets an inline body. For a body that is read from a socket, the caller creates the stream and sets it
    /// here.
    public var body: RequestBody?
    /// Whether the client can send a body from a socket again (`fetch/needBody`).
    public var canResendBody = false
    /// The fetch's own credential; valid for the origin of `url` only.
    public var credential: LoginCredential?
    /// User and password of the URL; valid for its origin only, and only after a challenge.
    public var userInfo: UserInfo?
    public var proxy: Proxy
    /// The credential for the proxy that the fetch names; valid for no other proxy.
    public var proxyCredential: LoginCredential?
    public var trust: TrustMode
    /// The SHA-256 hash of the only acceptable public key, also after redirects.
    public var pinnedKey: [UInt8]?
    /// The client certificate for the origin of `url`.
    @IndirectOptional public var certificate: CertificateCredential?
    public var originLogin = OriginLogin.broker
    /// Whether the fetch sends no request without a login, as if the server had challenged with Basic: token services of
    /// registries answer anyone, with fewer permissions.
    public var logsInFirst = false
    /// Whether the fetch is a request of the broker to an authorization server, for which no token is obtained.
    public var isLoginStep = false
    /// See `ConnectionKey.program`.
    public var program: Int?
    /// Whether the request needs a new connection. On an old one that ends without a response, it would be sent again.
    public var needsNewConnection = false
    public var interaction: Interaction
    /// The handler of this fetch alone, which is asked before the client.
    @IndirectOptional public var handler: Subscription?
    /// The client's subscription to challenges; `nil` if it has none, or is not to be asked about this fetch.
    @IndirectOptional public var subscription: Subscription?
    public var useStorage: Bool
    /// Whether the fetch is barred from stored credentials and from the user's files and tokens.
    public var isRestricted = false {
        didSet { if isRestricted { useStorage = false } }
    }
    /// Whether the client may name files and tokens of the user. An agent's answer may name them, unless the fetch is
    /// restricted.
    public var mayNameFiles = true
    public var preemption: Preemption
    /// The methods that may be used for servers; `nil` allows all.
    public var methods: [AuthenticationMethod]?
    /// The methods that may be used for proxies; `nil` allows all.
    public var proxyMethods: [AuthenticationMethod]?
    /// The limit of the total time on the network. If `timeoutBoundsWaiting`, it includes the time spent waiting for
    /// other fetches.
    public var timeout: Duration
    /// Whether `timeout` includes the wait for other fetches. It does if the client has set it.
    public var timeoutBoundsWaiting: Bool
    public var maxRedirects: Int
    public var redirects: RedirectParams
    /// The notifications that the client has requested.
    public var notify: [FetchNotification]

    /// Whether the client is notified of every request and response.
    var reportsExchanges: Bool { notify.contains(.exchanges) }

    /// Whether a certificate that does not verify can be accepted. Not for the broker's own secrets, such as a refresh token
    /// (SEMANTICS rule 24).
    var acceptsExceptions: Bool { !isLoginStep || originLogin == .broker }

    /// Checks the parameters of a `fetch/run` or a `fetch/start`.
    /// - Parameter inSteps: whether the response is delivered as soon as its header section has been received
    ///   (`fetch/start`).
    /// - Parameter url: that of `params`, if it is parsed already.
    /// - Throws: `FetchFailure` of kind `badURL`, `invalidHeader` or `invalidMethod`.
    public init(
        _ params: borrowing FetchRunParams, subscription: Subscription?, inSteps: Bool = false, url: FetchURL? = nil
    ) throws(FetchFailure) {
        self.url = if let url { url } else { try FetchURL(params.url) }
        userInfo = try params.userInfo.map { text throws(FetchFailure) in try UserInfo(text) }
        method = try HeaderPolicy.checkedMethod(params.method)
        headers = try HeaderPolicy.checked(params.headers)
        _options = Indirect(wrappedValue: try TransferOptions(params, inSteps: inSteps))
        body = params.body.map { .bytes($0) }
        credential = params.credential
        switch params.proxy {
        case .configured: proxy = .configured
        case .none: proxy = .none
        case .named(let named):
            proxy = .named(try ProxyEndpoint(named.url))
            if let given = named.credential {
                proxyCredential = given
            } else {
                proxyCredential = try Self.credential(in: named.userInfo)
            }
        }
        trust = params.tls.trust
        pinnedKey = params.tls.pin.flatMap { Hexadecimal.bytes($0.spkiSha256) }
        certificate = params.tls.certificate
        interaction = params.interaction
        handler = params.handler
        self.subscription = params.interaction == .ownClient ? subscription : nil
        useStorage = params.useStorage
        preemption = params.preemption
        methods = params.methods
        proxyMethods = params.proxyMethods ?? params.methods
        let longest = inSteps ? Limits.fetchTimeout : Limits.defaultFetchTimeout
        timeoutBoundsWaiting = params.timeoutMs != nil
        timeout = params.timeoutMs.map { .milliseconds($0) } ?? longest
        maxRedirects = params.maxRedirects
        redirects = params.redirects
        notify = params.notify
    }

    private static func credential(in text: Secret?) throws(FetchFailure) -> LoginCredential? {
        guard let text, let password = try UserInfo(text).password else { return nil }
        return LoginCredential(user: try UserInfo(text).user, password: password, persistence: .none)
    }

    /// The user that the fetch names, if any. No other user's credential is sent to the origin of `url`.
    var namedUser: Account? { credential?.shownAccount ?? userInfo.map { Account(user: $0.user) } }
}
