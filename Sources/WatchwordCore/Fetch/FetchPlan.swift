public import WatchwordProtocol

/// A fetch that has been checked: everything that its machine needs to know from the start.
public struct FetchPlan: Sendable, Equatable {
    /// Through which proxy it goes.
    public enum Proxy: Sendable, Equatable {
        case configured
        case none
        case named(ProxyEndpoint)
    }

    public var url: FetchURL
    public var method: String
    public var headers: [HeaderField]
    public var options: TransferOptions
    /// One that comes through a socket is put in by whoever has made its place.
    public var body: RequestBody?
    /// The client gives such a body again, should that be needed.
    public var givesBodyAgain = false
    /// The fetch's own; good for the origin of `url` only.
    public var credential: LoginCredential?
    /// From the URL; good for its origin only, and only after a challenge.
    public var userInfo: UserInfo?
    public var proxy: Proxy
    /// For the proxy that the fetch has named, and no other.
    public var proxyCredential: LoginCredential?
    public var trust: TrustMode
    /// The only key that is good enough, wherever the fetch is led.
    public var pinnedKey: [UInt8]?
    /// Shown to the origin of `url` when it asks.
    public var certificate: CertificateCredential?
    public var interaction: Interaction
    /// Of this fetch alone; asked before its client's subscription.
    public var handler: Subscription?
    /// What its client said about challenges; `nil` when it did not subscribe.
    public var subscription: Subscription?
    public var useStorage: Bool
    /// For somebody who gets nothing that is stored, and of the user's files and tokens nothing either.
    public var isRestricted = false {
        didSet { if isRestricted { useStorage = false } }
    }
    /// Files and tokens of the user may be named by the client. What people name at an agent is theirs anyway.
    public var mayNameFiles = true
    public var preemption: Preemption
    /// Schemes that may be used; `nil` allows all.
    public var methods: [AuthenticationMethod]?
    /// On the network, in all; and waiting for other fetches, where `timeoutBoundsWaiting`.
    public var timeout: Duration
    /// The client has named the time.
    public var timeoutBoundsWaiting: Bool
    public var maxRedirects: Int
    public var redirects: RedirectParams
    /// The client is told of every request and response.
    public var reportsExchanges: Bool

    /// Checks the parameters of a `fetch/run` or a `fetch/start`.
    /// - Parameter inSteps: the response is wanted as soon as it begins.
    /// - Throws: `FetchFailure` that names the parameter: `badURL`, `invalidHeader` or `invalidMethod`.
    public init(_ params: FetchRunParams, subscription: Subscription?, inSteps: Bool = false) throws(FetchFailure) {
        url = try FetchURL(params.url)
        userInfo = try params.userInfo.map { text throws(FetchFailure) in try UserInfo(text) }
        method = try HeaderPolicy.checkedMethod(params.method)
        headers = try HeaderPolicy.checked(params.headers)
        options = try TransferOptions(params, inSteps: inSteps)
        body = params.body.map { .bytes($0) }
        credential = params.credential
        switch params.proxy {
        case .configured: proxy = .configured
        case .none: proxy = .none
        case .named(let named):
            proxy = .named(try ProxyEndpoint(named.url))
            proxyCredential = named.credential
            if proxyCredential == nil { proxyCredential = try Self.credential(in: named.userInfo) }
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
        let longest = inSteps ? Limits.fetchTimeout : Limits.defaultFetchTimeout
        timeoutBoundsWaiting = params.timeoutMs != nil
        timeout = params.timeoutMs.map { .milliseconds($0) } ?? longest
        maxRedirects = params.maxRedirects
        redirects = params.redirects
        reportsExchanges = params.notify.contains(.exchanges)
    }

    private static func credential(in text: Secret?) throws(FetchFailure) -> LoginCredential? {
        guard let text, let password = try UserInfo(text).password else { return nil }
        return LoginCredential(user: try UserInfo(text).user, password: password, persistence: .none)
    }

    /// Who is named as the user: nobody else's credential serves this fetch at its own origin.
    var namedUser: Account? { credential?.shownAccount ?? userInfo.map { Account(user: $0.user) } }
}
