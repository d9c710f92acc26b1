public import WatchwordProtocol

/// A question of yes or no to the client of a fetch (semantics rule 3).
public enum Consultation: Sendable, Equatable, Hashable {
    /// Whether anybody can be asked about this space.
    case canAuthenticate(ProtectionSpace)
    /// Whether stored credentials may be read and written for this fetch.
    case useStorage
    /// Whether a redirect may be followed.
    case approveRedirect(Redirect)

    /// Whether a client that does not know the question has said no: about a certificate, and about a redirect.
    public var needsAnswer: Bool {
        switch self {
        case .canAuthenticate(let space): [.clientCertificate, .serverTrust].contains(space.authenticationMethod)
        case .useStorage: false
        case .approveRedirect: true
        }
    }
}

/// A redirect as its client is asked about it.
public struct Redirect: Sendable, Equatable, Hashable {
    public let status: Int
    public let from: String
    public let to: String
    /// Of the request that would be sent.
    public let method: String
}

/// What a client may want to know of its fetch on the way.
public enum FetchEvent: Sendable, Equatable {
    /// A redirect is followed.
    case redirected(status: Int, from: String, to: String)
    /// A request is sent.
    case requested(SentRequest)
    /// A response has come, be it the result, a redirect or a challenge.
    case answered(ResponseSummary)
    /// The fetch waits for another one, or that one does something else now.
    case waiting(FetchWait)
    /// The response that becomes the result.
    case responded(status: Int, headers: [HeaderField])
}

/// How a fetch ended well.
public struct FetchResponse: Sendable, Equatable {
    public var response: TransferResponse
    /// Of the last hop.
    public var url: FetchURL
    public var authentication: FetchRunResult.Authentication?
    /// To the proxy.
    public var proxyAuthentication: FetchRunResult.Authentication?
    /// Why nobody was asked about a response that challenges.
    public var unanswered: Unanswered?
    public var exchanges: Int
    /// What the end of a body that is on its way has to prove; see `FetchTable.noteEnd`.
    public var proofs: [ResponseProof] = []
}

/// What a machine cannot know by itself.
public struct FetchEnvironment: Sendable {
    /// Since any one start, never going back.
    public var now: Duration
    /// Of the wall clock, since 1970; it may jump.
    public var sinceEpoch: Duration
    /// At least 128 random bits as text, fresh for each call (RFC 7616 section 5.12).
    public var makeClientNonce: @Sendable () -> String
    /// Of the configuration.
    public var proxy: ProxyRule
    /// Of the configuration.
    public var hosts: HostRules
    /// Of the configuration.
    public var schemes: SchemeRules
    /// Whether the configuration names a netrc file.
    public var usesNetrc: Bool

    /// Before the first event, which brings its own.
    static let none = FetchEnvironment(now: .zero, makeClientNonce: { preconditionFailure("no event has come yet") })

    public init(
        now: Duration, sinceEpoch: Duration? = nil, proxy: ProxyRule = ProxyRule(), hosts: HostRules = HostRules(),
        schemes: SchemeRules = SchemeRules(), usesNetrc: Bool = false, makeClientNonce: @escaping @Sendable () -> String
    ) {
        self.now = now
        self.sinceEpoch = sinceEpoch ?? now
        self.proxy = proxy
        self.hosts = hosts
        self.schemes = schemes
        self.usesNetrc = usesNetrc
        self.makeClientNonce = makeClientNonce
    }
}
