public import WatchwordProtocol

/// The fetch that answers one request to a front.
public final class FrontExchange {
    public var params: FetchRunParams
    /// The URL of the program's request, with its target as it was sent; `nil` for a tunnel.
    public let url: FetchURL?
    /// The value of `Authorization` that the program has sent, if any. Then the program logs in, not the broker.
    private let authorization: Secret?
    private let isTunnel: Bool
    /// Fields that only a front sends.
    private var hopByHop: [HeaderField] = []
    private let switchesProtocol: Bool
    /// The number of the program's connection, if its connections to the origin must not be shared.
    public var program: Int?
    /// Whether the program has logged in on a connection to this origin, without which the request must not be sent.
    public var needsOldConnection = false

    private static let omittedHeaders: Set<String> = ["accept", "user-agent"]

    /// - Parameters:
    ///   - url: the URL to fetch.
    ///   - headers: the fields of `FrontFields.request`.
    ///   - usesCredentials: whether stored credentials may be used, and an agent asked.
    public init(
        _ request: FrontRequest, url: FetchURL, headers: [HeaderField], body: FrontBody, usesCredentials: Bool
    ) {
        params = FetchRunParams(url: url.text)
        self.url = url
        params.method = request.method
        params.headers = headers
        params.maxRedirects = 0
        params.interaction = usesCredentials ? .agent : .none
        params.useStorage = usesCredentials
        params.preemption = usesCredentials ? .session : .never
        switch body {
        case .none: break
        case .bytes(let bytes): params.body = bytes
        case .stream(let size): params.attachedBody = AttachedBody(sizeBytes: size)
        }
        authorization = request.authorization
        isTunnel = false
        switchesProtocol = request.upgrade != nil
        if let upgrade = request.upgrade {
            hopByHop = [HeaderField("Connection", "Upgrade"), HeaderField("Upgrade", upgrade)]
        } else if request.acceptsTrailers {
            hopByHop = [HeaderField("Connection", "TE"), HeaderField("TE", "trailers")]
        }
    }

    /// Opens a tunnel for CONNECT.
    public init(tunnelTo host: ExactText, port: Int, usesCredentials: Bool) {
        params = FetchRunParams(url: "https://\(host):\(port)/")
        url = nil
        params.interaction = usesCredentials ? .agent : .none
        params.useStorage = usesCredentials
        params.maxRedirects = 0
        authorization = nil
        isTunnel = true
        switchesProtocol = false
    }

    /// Adapts the request made from `params`.
    public func adapt(_ request: inout FetchRequest) {
        request.program = program
        request.headers += hopByHop
        if let authorization { request.originLogin = .program(authorization) }
        if isTunnel { request.originLogin = .tunnel }
        var options = request.options
        (options.awaitsBody, options.needsOldConnection, options.opensTunnel) = (true, needsOldConnection, isTunnel)
        // The program's request is passed on as it is.
        if !isTunnel { options.omittedHeaders = Self.omittedHeaders }
        if switchesProtocol {
            options.switchesProtocol = true
            options.omittedHeaders.insert("expect")
        }
        request.options = options
    }
}

extension TransferResponse {
    /// Whether the origin closes the connection after this response (RFC 9112 section 9.6).
    public var endsConnection: Bool {
        headers.hasElement("close", of: "Connection")
            || httpVersion == "1.0" && !headers.hasElement("keep-alive", of: "Connection")
    }
}

extension FrontRefusal {
    /// The response to a program whose request could not be answered.
    public init(_ failure: FetchFailure) {
        let status =
            switch failure.kind {
            case .denied, .challengeCancelled, .locked: 403
            case .badURL, .invalidHeader: 400
            case .invalidMethod: 501
            case .busy, .shuttingDown, .cancelled: 503
            case .timedOut, .challengeTimedOut: 504
            // The target is forbidden, or not available now: the program has to know it.
            case .proxyFailed where [403, 451, 503, 504].contains(failure.proxyStatus): failure.proxyStatus ?? 502
            default: 502
            }
        self.init(status, failure.kind.rawValue, failure.text)
    }

    /// The upstream proxy requires a login that was not made.
    /// - Parameters:
    ///   - unanswered: why nobody was asked; `nil` if a login was rejected.
    ///   - hasAgent: whether an agent is registered.
    public static func upstreamLogin(_ unanswered: Unanswered?, hasAgent: Bool) -> FrontRefusal {
        let offered = (unanswered?.schemes ?? []).map { "\($0.name.shortened) (\($0.reason.rawValue))" }
        let reason =
            switch unanswered?.cause {
            case .noAgent where !hasAgent: "and none was supplied; start an agent, such as \"watchword agent\""
            case .noAgent: "and no agent supplied one; answer its question"
            case .interaction: "and this request must not cause a question; log in with another program first"
            case .stopped: "and you have stopped the questions of this program; \"watchword prompts\" lets it ask again"
            case .consentDenied: "and the use of the stored one was not allowed"
            case .canAuthenticate, .unsubscribed: "and none was supplied"
            case nil where offered.isEmpty: "and rejected the login; check user and password"
            case nil: "and none of its schemes can be used: \(offered.joined(separator: ", "))"
            }
        return FrontRefusal(502, "upstream-login", "the upstream proxy requires a login, \(reason)")
    }
}
