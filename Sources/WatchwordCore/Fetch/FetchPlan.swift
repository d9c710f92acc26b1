public import WatchwordProtocol

/// A fetch that has been checked: everything that its machine needs to know from the start.
public struct FetchPlan: Sendable, Equatable {
    public var url: FetchURL
    public var method: String
    public var headers: [HeaderField]
    public var body: [UInt8]?
    /// The fetch's own; good for the origin of `url` only.
    public var credential: PasswordCredential?
    /// From the URL; good for its origin only, and only after a challenge.
    public var userInfo: UserInfo?
    public var interaction: Interaction
    /// What its client said about challenges; `nil` when it did not subscribe.
    public var subscription: Subscription?
    public var useStorage: Bool
    public var preemptive: Bool
    /// Schemes that may be used; `nil` allows all.
    public var methods: [AuthenticationMethod]?
    /// On the network, in all.
    public var timeout: Duration
    public var maxBodyBytes: Int
    public var maxRedirects: Int

    /// Checks the parameters of a `fetch/run`.
    /// - Throws: `FetchFailure` that names the parameter: `badURL`, `invalidHeader` or `invalidMethod`.
    public init(_ params: FetchRunParams, subscription: Subscription?) throws(FetchFailure) {
        url = try FetchURL(params.url)
        userInfo = try params.userInfo.map { text throws(FetchFailure) in try UserInfo(text) }
        method = try HeaderPolicy.checkedMethod(params.method)
        headers = try HeaderPolicy.checked(params.headers)
        body = params.body
        credential =
            if case .password(let password)? = params.credential { password } else { nil }
        interaction = params.interaction
        self.subscription = params.interaction == .ownClient ? subscription : nil
        useStorage = params.useStorage
        preemptive = params.preemptive
        methods = params.methods
        timeout = .milliseconds(params.timeoutMs)
        maxBodyBytes = max(params.maxInlineBodyBytes, Limits.heldBodyBytes)
        maxRedirects = params.maxRedirects
    }

    /// Rule 5: every challenge goes to the client at once, and it is asked neither `canAuthenticate` nor `useStorage`.
    var asksFirst: Bool { subscription?.mode == .everything }

    /// Who is named as the user: nobody else's credential serves this fetch at its own origin.
    var namedUser: String? { credential?.user ?? userInfo?.user }
}
