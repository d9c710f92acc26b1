public import JSONText

/// Who is asked when a server challenges.
public enum Interaction: String, Sendable, CaseIterable {
    /// The connection that started the fetch, if it subscribed; then an agent.
    case ownClient = "self"
    case agent
    /// Nobody: what is stored is all there is.
    case none
}

/// What a fetch wants to be told on its way.
public enum FetchNotification: String, Sendable, CaseIterable {
    case headers, progress, redirect, waiting
    /// `auth/resolved` comes whether or not it is named.
    case resolved
    /// Each request that is sent, and each response (`fetch/request`, `fetch/response`).
    case exchanges
}

/// `fetch/run`: the request to be made, and how to deal with challenges. Only `url` is required.
public struct FetchRunParams: Sendable, Equatable {
    /// Without user information, which is in `userInfo`: it may hold a password.
    public var url: String
    /// What stood before `@` in the URL's authority, percent-encoded as it came (RFC 3986 section 3.2.1).
    public var userInfo: Secret?
    public var method = "GET"
    public var headers: [HeaderField] = []
    /// Names of fields that the broker is not to add by itself: `Accept`, `User-Agent`, `Expect`.
    public var omitHeaders: [String] = []
    public var body: [UInt8]?
    /// In place of `body`: it comes through a second connection.
    public var attachedBody: AttachedBody?
    /// For the origin of `url` only.
    public var credential: LoginCredential?
    public var proxy = ProxyChoice.configured
    public var tls = TLSParams()
    public var interaction = Interaction.ownClient
    public var useStorage = true
    public var preemption = Preemption.session
    /// Answers the challenges of this fetch, before the connection's subscription; only with the interaction `self`.
    public var handler: Subscription?
    /// Schemes that may be used; `nil` allows all.
    public var methods: [AuthenticationMethod]?
    /// Time on the network, and waiting for other fetches, in all; the own questions do not count.
    /// Of a fetch in steps only when it was given: a large body takes its time.
    public var timeoutMs: Int?
    public var maxInlineBodyBytes = Limits.defaultInlineBodyBytes
    public var maxRedirects = Limits.defaultRedirects
    public var redirects = RedirectParams()
    /// For the name and the connection, a proxy's included; `nil` for the broker's own limit.
    public var connectTimeoutMs: Int?
    /// Of the response, after decoding; `nil` for any size.
    public var maxBodyBytes: Int?
    /// A content coding is asked for, and undone.
    public var decompress = false
    /// Of either body; `nil` for no limit.
    public var maxBytesPerSecond: Int?
    public var lowSpeed: LowSpeed?
    public var notify: [FetchNotification] = []

    public init(url: String) { self.url = url }
}

extension FetchRunParams {
    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
        let text = try members.required("url", members.secret("url", maxBytes: Limits.urlBytes))
        (url, userInfo) = URLText.split(text)
        method = try members.string("method") ?? "GET"
        headers = try Self.headers(members)
        if let given = try members.object("body") {
            attachedBody = try AttachedBody(given)
            if attachedBody == nil { body = try Self.body(given) }
        }
        credential = try members["credential"].map { json throws(InvalidParams) in
            guard case .login(let login) = try Credential(json, at: "params.credential") else {
                throw members.wrong("credential", "a password, a token or a header; certificates belong into tls")
            }
            return login
        }
        proxy = try ProxyChoice(members)
        if let given = try members.object("tls") { tls = try TLSParams(given) }
        timeoutMs = try members.integer("timeoutMs", in: 1...Limits.fetchTimeout.wholeMilliseconds)
        maxInlineBodyBytes =
            try members.integer("maxInlineBodyBytes", in: 0...Limits.inlineBodyBytes) ?? maxInlineBodyBytes
        maxRedirects = try members.integer("maxRedirects", in: 0...Limits.redirects) ?? maxRedirects
        if let given = try members.object("redirects") { redirects = try RedirectParams(given) }
        connectTimeoutMs = try members.integer("connectTimeoutMs", in: 1...Limits.fetchTimeout.wholeMilliseconds)
        if let given = try members.elements("omitHeaders") {
            omitHeaders = given.compactMap(\.string)
            guard omitHeaders.count == given.count else { throw members.wrong("omitHeaders", "a list of strings") }
        }
        notify = try members.choices("notify", as: FetchNotification.self) ?? []
        if let auth = try members.object("auth") { try readAuth(auth) }
        try readPace(members)
    }

    private mutating func readPace(_ members: Members) throws(InvalidParams) {
        maxBodyBytes = try members.integer("maxBodyBytes", in: 0...Limits.bodyBytes)
        decompress = try members.boolean("decompress") ?? decompress
        maxBytesPerSecond = try members.integer("maxBytesPerSecond", in: 1...Limits.bodyBytes)
        lowSpeed = try members.object("lowSpeed").map { members throws(InvalidParams) in try LowSpeed(members) }
    }

    private mutating func readAuth(_ auth: Members) throws(InvalidParams) {
        interaction = try auth.choice("interaction", as: Interaction.self) ?? interaction
        useStorage = try auth.boolean("useStorage") ?? useStorage
        preemption = try Preemption(auth) ?? preemption
        methods = try auth.choices("methods", as: AuthenticationMethod.self)
        handler = try auth.object("handler").map { given throws(InvalidParams) in try Subscription(handler: given) }
        guard handler == nil || interaction == .ownClient else {
            throw auth.wrong("handler", "absent where the interaction is \(interaction.rawValue)")
        }
    }

    /// A list of pairs, or an object.
    private static func headers(_ members: Members) throws(InvalidParams) -> [HeaderField] {
        guard let json = members["headers"] else { return [] }
        let pairs = json.members.map { $0.map { ($0.name, $0.value.string) } } ?? json.elements?.map(Self.pair)
        let fields = pairs?.compactMap { name, value in value.map { HeaderField(name, $0) } }
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

    /// May hold a password: it must be written with `JSON.write(_:)`.
    public var json: JSON {
        [
            "url": URLText.joined(url, userInfo), "method": .string(method),
            "headers": headers.isEmpty ? nil : headers.json,
            "omitHeaders": omitHeaders.isEmpty ? nil : .array(omitHeaders.map { .string($0) }),
            "body": attachedBody?.json ?? body.map(BodyValue.json),
            "credential": credential?.json, "proxy": proxy.json, "tls": tls == TLSParams() ? nil : tls.json,
            "auth": [
                "interaction": .string(interaction.rawValue), "useStorage": .boolean(useStorage),
                "preemptive": preemption.json, "handler": handler?.handlerJSON,
                "methods": methods.map { .array($0.map { .string($0.rawValue) }) },
            ],
            "timeoutMs": timeoutMs.map { .integer($0) }, "maxInlineBodyBytes": .integer(maxInlineBodyBytes),
            "maxRedirects": .integer(maxRedirects),
            "redirects": redirects == RedirectParams() ? nil : redirects.json,
            "connectTimeoutMs": connectTimeoutMs.map { .integer($0) },
            "maxBodyBytes": maxBodyBytes.map { .integer($0) }, "decompress": decompress ? true : nil,
            "maxBytesPerSecond": maxBytesPerSecond.map { .integer($0) }, "lowSpeed": lowSpeed?.json,
            "notify": notify.isEmpty ? nil : .array(notify.map { .string($0.rawValue) }),
        ]
    }
}

/// A request's body that comes through a second connection, with `fetch/attach`.
public struct AttachedBody: Sendable, Equatable {
    /// `nil` when nobody knows.
    public var sizeBytes: Int?

    public init(sizeBytes: Int?) { self.sizeBytes = sizeBytes }

    /// `nil` for a body of another type.
    init?(_ members: Members) throws(InvalidParams) {
        guard try members.string("type") == "attach" else { return nil }
        sizeBytes = try members.integer("sizeBytes", in: 0...Limits.bodyBytes)
    }

    public var json: JSON { ["type": "attach", "sizeBytes": sizeBytes.map { .integer($0) }] }
}

/// The reply to `fetch/needBody`.
public enum NeededBody: Sendable, Equatable {
    case bytes([UInt8])
    case attached(AttachedBody)

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json, at: "answer")
        try members.refuseMembers(otherThan: ["body"])
        let given = try members.object("body")
        let body = try members.required("body", given)
        if let attached = try AttachedBody(body) {
            self = .attached(attached)
        } else {
            self = .bytes(try FetchRunParams.body(body))
        }
    }
}

/// A fetch ends when it is slower than `bytesPerSecond` for `seconds` in a row.
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
    /// A list of an enumeration's strings.
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
        Int(components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000)
    }

    /// Milliseconds, with the fraction.
    public var milliseconds: Double {
        Double(components.seconds) * 1000 + Double(components.attoseconds) / 1e15
    }
}
