public import JSONText

/// The respondents for the challenges of a fetch.
public enum Interaction: String, Sendable, CaseIterable {
    /// The connection that started the fetch, if it is subscribed; then an agent.
    case ownClient = "self"
    case agent
    /// No respondent: only stored credentials are used.
    case none
}

/// The notifications that a fetch requests.
public enum FetchNotification: String, Sendable, CaseIterable {
    case headers, progress, redirect, waiting
    /// Each request sent and each response received (`fetch/request`, `fetch/response`).
    case exchanges
}

/// The cookies that a fetch sends by itself.
public enum CookieUse: String, Sendable, CaseIterable {
    /// Those that its own challenges and redirects have set.
    case fetch
    case none
}

/// The parameters of `fetch/run`: the HTTP request, and how challenges are handled. Only `url` is required.
public struct FetchRunParams: Sendable, Equatable {
    /// The URL without user information, which may contain a password and is in `userInfo`.
    public var url: String
    /// The user information of the URL, still percent-encoded (RFC 3986 section 3.2.1).
    public var userInfo: Secret?
    public var method = "GET"
    public var headers: [HeaderField] = []
    /// The fields that the broker must not add itself: `Accept`, `User-Agent`, `Expect`.
    public var omitHeaders: [String] = []
    public var body: [UInt8]?
    /// Used instead of `body`: the body is sent over a second connection.
    public var attachedBody: AttachedBody?
    /// A credential for the origin of `url` only.
    public var credential: LoginCredential?
    public var proxy = ProxyChoice.configured
    public var tls = TLSParams()
    public var interaction = Interaction.ownClient
    public var useStorage = true
    public var preemption = Preemption.session
    /// A handler for the challenges of this fetch, asked before the connection's subscription. Requires the interaction `self`.
    public var handler: Subscription?
    /// The authentication methods that may be used; `nil` allows all.
    public var methods: [AuthenticationMethod]?
    /// The authentication methods that may be used for the proxy; `nil` for those of `methods`.
    public var proxyMethods: [AuthenticationMethod]?
    /// The time limit for the network and for waiting for other fetches; the fetch's own prompts do not count. `nil` limits the
    /// network time only: to `Limits.defaultFetchTimeout`, or `Limits.fetchTimeout` for a stepwise fetch.
    public var timeoutMs: Int?
    /// The largest body that the result contains. Not a parameter of a stepwise fetch.
    public var maxInlineBodyBytes = Limits.defaultInlineBodyBytes
    public var maxRedirects = Limits.defaultRedirects
    public var redirects = RedirectParams()
    /// The time limit for name resolution and connecting, also to a proxy; `nil` for the broker's default.
    public var connectTimeoutMs: Int?
    /// The size limit of the response body, after content decoding; `nil` for no limit.
    public var maxBodyBytes: Int?
    /// Whether to request a compressed response (`Accept-Encoding`), and decompress it.
    public var decompress = false
    public var cookies = CookieUse.fetch
    /// The rate limit for the body, in each direction; `nil` for no limit.
    public var maxBytesPerSecond: Int?
    public var lowSpeed: LowSpeed?
    public var notify: [FetchNotification] = []

    public init(url: String) { self.url = url }
}

extension FetchRunParams: ClientValue {
    public init(_ members: Members) throws(InvalidParams) {
        let text = try members.required("url", members.secret("url", maxBytes: Limits.urlBytes))
        (url, userInfo) = URLText.split(text)
        method = try members.string("method") ?? "GET"
        headers = try Self.headers(members)
        if let given = try members.object("body") {
            attachedBody = try AttachedBody(given)
            if attachedBody == nil { body = try Self.body(given) }
        }
        if let given = try members.value("credential", as: Credential.self) {
            guard case .login(let login) = given else {
                throw members.wrong("credential", "a password, a token or a header; certificates go into tls")
            }
            credential = login
        }
        proxy = try ProxyChoice(members)
        if let given = try members.object("tls") { tls = try TLSParams(given) }
        timeoutMs = try members.integer("timeoutMs", in: Self.times)
        maxRedirects = try members.integer("maxRedirects", in: 0...Limits.redirects) ?? maxRedirects
        if let given = try members.object("redirects") { redirects = try RedirectParams(given) }
        connectTimeoutMs = try members.integer("connectTimeoutMs", in: Self.times)
        if let given = try members.elements("omitHeaders") {
            omitHeaders = given.compactMap(\.string)
            guard omitHeaders.count == given.count else { throw members.wrong("omitHeaders", "a list of strings") }
        }
        notify = try members.choices("notify", as: FetchNotification.self) ?? []
        if let auth = try members.object("auth") { try readAuth(auth) }
        try readPace(members)
    }

    private static let times = 1...Limits.fetchTimeout.wholeMilliseconds

    private mutating func readPace(_ members: Members) throws(InvalidParams) {
        maxBodyBytes = try members.integer("maxBodyBytes", in: 0...Limits.bodyBytes)
        decompress = try members.boolean("decompress") ?? decompress
        cookies = try members.choice("cookies", as: CookieUse.self) ?? cookies
        maxBytesPerSecond = try members.integer("maxBytesPerSecond", in: 1...Limits.bodyBytes)
        lowSpeed = try members.object("lowSpeed").map { members throws(InvalidParams) in try LowSpeed(members) }
    }

    private mutating func readAuth(_ auth: Members) throws(InvalidParams) {
        interaction = try auth.choice("interaction", as: Interaction.self) ?? interaction
        useStorage = try auth.boolean("useStorage") ?? useStorage
        preemption = try Preemption(auth) ?? preemption
        methods = try auth.choices("methods", as: AuthenticationMethod.self)
        proxyMethods = try auth.choices("proxyMethods", as: AuthenticationMethod.self)
        handler = try auth.object("handler").map { given throws(InvalidParams) in try Subscription(handler: given) }
        guard handler == nil || interaction == .ownClient else {
            throw auth.wrong("handler", "absent if the interaction is \(interaction.rawValue)")
        }
    }

    /// Parses `headers`: a list of pairs, or an object.
    private static func headers(_ members: Members) throws(InvalidParams) -> [HeaderField] {
        guard let json = members["headers"] else { return [] }
        let pairs = json.members.map { $0.map { ($0.name, $0.value.string) } } ?? json.elements?.map(Self.pair)
        let fields = pairs?.compactMap { name, value in value.map { HeaderField(name, $0.asHeader) } }
        guard let pairs, let fields, fields.count == pairs.count else {
            throw members.wrong("headers", "a list of pairs of strings, or an object of strings")
        }
        return fields
    }

    private static func pair(_ json: JSON) -> (String, String?) {
        guard let elements = json.elements, elements.count == 2, let name = elements[0].string else { return ("", nil) }
        return (name, elements[1].string)
    }

    static func body(_ members: Members) throws(InvalidParams) -> [UInt8] {
        let type = try members.required("type", members.string("type"))
        guard type == "string" || type == "base64" else {
            throw members.wrong("type", "one of: string, base64, attach")
        }
        let value = try members.required("value", members["value"])
        let bytes = value.withUTF8 { type == "base64" ? Base64.decode($0) : Array($0) }
        if let bytes = bytes ?? nil { return bytes }
        throw members.wrong("value", type == "base64" ? "base64 (RFC 4648 section 4), with padding" : "a string")
    }

    /// May contain a password: serialize it with `JSON.write(_:)`.
    public var json: JSON {
        [
            "url": URLText.joined(url, userInfo), "method": .string(method),
            "headers": headers.isEmpty ? nil : .pairs(headers.map { ($0.name, $0.value) }),
            "omitHeaders": omitHeaders.isEmpty ? nil : .array(omitHeaders.map { .string($0) }),
            "body": attachedBody?.json ?? body.map(BodyValue.json),
            "credential": credential?.json, "proxy": proxy.json, "tls": tls == TLSParams() ? nil : tls.json,
            "auth": [
                "interaction": .string(interaction.rawValue), "useStorage": .boolean(useStorage),
                "preemptive": preemption.json, "handler": handler?.handlerJSON,
                "methods": methods.map { .array($0.map { .string($0.rawValue) }) },
                "proxyMethods": proxyMethods.map { .array($0.map { .string($0.rawValue) }) },
            ],
            "timeoutMs": timeoutMs.map { .integer($0) },
            "maxRedirects": .integer(maxRedirects),
            "redirects": redirects == RedirectParams() ? nil : redirects.json,
            "connectTimeoutMs": connectTimeoutMs.map { .integer($0) },
            "maxBodyBytes": maxBodyBytes.map { .integer($0) }, "decompress": decompress ? true : nil,
            "cookies": cookies == .fetch ? nil : .string(cookies.rawValue),
            "maxBytesPerSecond": maxBytesPerSecond.map { .integer($0) }, "lowSpeed": lowSpeed?.json,
            "notify": notify.isEmpty ? nil : .array(notify.map { .string($0.rawValue) }),
        ]
    }
}

/// A request body that is sent over a second connection, with `fetch/attach`.
public struct AttachedBody: Sendable, Equatable {
    /// The size of the body; `nil` if unknown.
    public var sizeBytes: Int?

    public init(sizeBytes: Int?) { self.sizeBytes = sizeBytes }

    /// Returns `nil` for a body of another type.
    init?(_ members: Members) throws(InvalidParams) {
        guard try members.string("type") == "attach" else { return nil }
        sizeBytes = try members.integer("sizeBytes", in: 0...Limits.bodyBytes)
    }

    public var json: JSON { ["type": "attach", "sizeBytes": sizeBytes.map { .integer($0) }] }
}

/// The reply to `fetch/needBody`.
public enum ResentBody: ClientValue, Sendable, Equatable {
    case bytes([UInt8])
    case attached(AttachedBody)

    public static var path: String { "answer" }

    public init(_ members: Members) throws(InvalidParams) {
        let given = try members.object("body")
        let body = try members.required("body", given)
        if let attached = try AttachedBody(body) {
            self = .attached(attached)
        } else {
            self = .bytes(try FetchRunParams.body(body))
        }
    }
}

/// A minimum speed: a fetch is aborted if it is slower than `bytesPerSecond` for `seconds` without interruption.
public struct LowSpeed: Sendable, Equatable {
    public var bytesPerSecond: Int
    public var seconds: Int

    public init(bytesPerSecond: Int, seconds: Int) {
        self.bytesPerSecond = bytesPerSecond
        self.seconds = seconds
    }

    init(_ members: Members) throws(InvalidParams) {
        let speed = try members.integer("bytesPerSecond", in: 1...Limits.bodyBytes)
        bytesPerSecond = try members.required("bytesPerSecond", speed)
        let longest = Int(Limits.fetchTimeout.components.seconds)
        seconds = try members.required("seconds", members.integer("seconds", in: 1...longest))
    }

    var json: JSON { ["bytesPerSecond": .integer(bytesPerSecond), "seconds": .integer(seconds)] }
}

extension Members {
    /// Returns a list of raw values of `Choice`.
    public func choices<Choice: RawRepresentable & CaseIterable>(
        _ name: String, as type: Choice.Type
    ) throws(InvalidParams) -> [Choice]? where Choice.RawValue == String {
        guard let elements = try elements(name) else { return nil }
        let known = elements.compactMap { $0.string.flatMap(Choice.init(rawValue:)) }
        guard known.count == elements.count else {
            throw wrong(name, "a list of: \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return known
    }
}

extension Duration {
    /// Milliseconds, rounded down.
    public var wholeMilliseconds: Int {
        let (seconds, attoseconds) = components
        return Int(seconds * 1000 + attoseconds / 1_000_000_000_000_000)
    }

    /// Milliseconds, including the fraction.
    public var milliseconds: Double {
        let (seconds, attoseconds) = components
        return Double(seconds) * 1000 + Double(attoseconds) / 1e15
    }
}
