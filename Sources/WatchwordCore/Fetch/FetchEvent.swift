public import WatchwordProtocol

/// A yes-or-no request to the client of a fetch (SEMANTICS rule 3).
public enum Consultation: Sendable, Equatable, Hashable {
    /// Whether the client can authenticate in this space (`auth/canAuthenticate`).
    case canAuthenticate(ProtectionSpace)
    /// Whether stored credentials may be read and written for this fetch.
    case useStorage
    /// Whether a redirect may be followed.
    case approveRedirect(Redirect)

    /// Whether a client that does not implement the request counts as refusing, as it does for certificates and
    /// redirects.
    public var needsAnswer: Bool {
        switch self {
        case .canAuthenticate(let space): [.clientCertificate, .serverTrust].contains(space.authenticationMethod)
        case .useStorage: false
        case .approveRedirect: true
        }
    }
}

/// A redirect, as described to the client that is asked about it.
public struct Redirect: Sendable, Equatable, Hashable {
    public let status: Int
    public let from: String
    public let to: String
    /// The method of the request that would follow.
    public let method: String
}

/// The progress of a fetch, for its client.
public enum FetchEvent: Sendable, Equatable {
    /// The fetch follows a redirect.
    case redirected(status: Int, from: String, to: String)
    /// The fetch sends a request.
    case requested(SentRequest)
    /// A response was received: the result, a redirect or a challenge.
    case answered(ResponseSummary)
    /// The fetch waits for another fetch, or the reason for its wait has changed.
    case waiting(FetchWait)
    /// The response that becomes the result.
    case responded(status: Int, headers: HeaderBlock)
}

/// The result of a fetch.
public struct FetchResponse: Sendable, Equatable {
    public var response: TransferResponse
    /// The URL of the last hop.
    public var url: FetchURL
    /// The accepted login to the server.
    public var authentication: FetchRunResult.Authentication?
    /// The accepted login to the proxy.
    public var proxyAuthentication: FetchRunResult.Authentication?
    /// Why no respondent was asked about a response that challenges (SEMANTICS rule 28).
    public var unanswered: Unanswered?
    /// The number of requests sent.
    public var exchanges: Int
    /// The checks of proofs (`rspauth`) that are due at the end of a streamed body; see `FetchTable.recordEnd`.
    public var proofs: [ResponseProof] = []
}

/// The external inputs of a fetch: time, random numbers and configuration.
public struct FetchEnvironment: Sendable {
    /// Monotonic time.
    public var now: Duration
    /// Wall-clock time since 1970, which may jump.
    public var sinceEpoch: Duration
    public var clientNonces: ClientNonces
    /// The configured upstreams.
    public var proxy: ProxyRule
    public var rules: Boxed<FetchRules>

    /// A placeholder until the first event, which supplies its own environment.
    static let none = FetchEnvironment(now: .zero)

    /// - Parameter rules: shared by all environments of a configuration.
    public init(
        now: Duration, sinceEpoch: Duration? = nil, proxy: ProxyRule = ProxyRule(),
        _ rules: Boxed<FetchRules> = Boxed(FetchRules()), clientNonces: ClientNonces = .random
    ) {
        self.now = now
        self.sinceEpoch = sinceEpoch ?? now
        self.proxy = proxy
        self.rules = rules
        self.clientNonces = clientNonces
    }
}

/// The rules of the configuration for all fetches.
public struct FetchRules: Sendable {
    /// The hosts that are allowed and denied (`fetch.allow`, `fetch.deny`).
    public var hosts: HostRules
    /// The schemes that are allowed, and their order.
    public var schemes: SchemeRules
    /// Whether the configuration names a netrc file or a command.
    public var usesNetrc: Bool
    /// The rules by which tokens are obtained.
    public var tokens: OAuthRules

    public init(
        hosts: HostRules = HostRules(), schemes: SchemeRules = SchemeRules(), usesNetrc: Bool = false,
        tokens: OAuthRules = OAuthRules([])
    ) {
        (self.hosts, self.schemes, self.usesNetrc, self.tokens) = (hosts, schemes, usesNetrc, tokens)
    }
}
