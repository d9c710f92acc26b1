public import JSONText

/// `auth/subscribe`: selects the challenges of its own fetches that a client answers, and their delivery.
public struct AuthSubscribe: Method, Equatable {
    public static let name = "auth/subscribe"
    public static let access = MethodAccess.everyClient

    /// The delivery; `nil` leaves the delivery of `initialize` unchanged.
    public var delivery: ChallengeDelivery?
    public var methods: [AuthenticationMethod]?
    public var hosts: [HostPattern]?
    public var mode: ChallengeMode
    public var asksCanAuthenticate: Bool
    public var asksUseStorage: Bool
    public var asksNeedBody: Bool
    public var approvesRedirects: Bool
    /// The number of simultaneous questions the client accepts; `nil` for no limit.
    public var maxPending: Int?

    public init(_ members: Members) throws(InvalidParams) {
        delivery = try members.choice("delivery", as: ChallengeDelivery.self)
        methods = try members.choices("methods", as: AuthenticationMethod.self)
        hosts = try members.elements("hosts").map { elements throws(InvalidParams) in
            let patterns = elements.compactMap { $0.string.flatMap { try? HostPattern($0) } }
            guard patterns.count == elements.count, patterns.count <= Limits.subscriptionHosts else {
                throw members.wrong(
                    "hosts", "a list of at most \(Limits.subscriptionHosts) hosts such as \"*.example.com\"")
            }
            return patterns
        }
        mode = try members.choice("mode", as: ChallengeMode.self) ?? .classic
        asksCanAuthenticate = try members.boolean("asksCanAuthenticate") ?? false
        asksUseStorage = try members.boolean("asksUseStorage") ?? false
        asksNeedBody = try members.boolean("asksNeedBody") ?? false
        approvesRedirects = try members.boolean("approvesRedirects") ?? false
        maxPending = try members.integer("maxPending", in: Limits.pendingQuestions)
    }

    /// Returns the subscription; `earlier` is the client's previous delivery, if any.
    public func subscription(after earlier: ChallengeDelivery?) -> Subscription {
        var subscription = Subscription(
            delivery: delivery ?? earlier ?? .request, methods: methods, hosts: hosts, mode: mode,
            asksCanAuthenticate: asksCanAuthenticate, asksUseStorage: asksUseStorage,
            asksNeedBody: asksNeedBody, maxPending: maxPending)
        subscription.approvesRedirects = approvesRedirects
        return subscription
    }
}

extension Subscription {
    /// Parses `auth.handler` of a fetch, the handler for the challenges of that fetch.
    init(handler members: Members) throws(InvalidParams) {
        let delivery = try members.choice("delivery", as: ChallengeDelivery.self) ?? .request
        guard [.request, .notification].contains(delivery) else {
            throw members.wrong("delivery", "one of: request, notification")
        }
        self.init(
            delivery: delivery, methods: try members.choices("methods", as: AuthenticationMethod.self),
            mode: try members.choice("mode", as: ChallengeMode.self) ?? .classic)
    }

    /// The subscription as `auth.handler` of a fetch.
    var handlerJSON: JSON {
        [
            "delivery": .string(delivery.rawValue),
            "methods": methods.map { .array($0.map { .string($0.rawValue) }) }, "mode": .string(mode.rawValue),
        ]
    }
}

/// `auth/unsubscribe`: ends the subscription, also for fetches that are already running.
public struct AuthUnsubscribe: ParameterlessMethod {
    public static let name = "auth/unsubscribe"
    public static let access = MethodAccess.everyClient
    public init() {}
}

/// `auth/respond`: answers a challenge that was delivered as `auth/pending`.
public struct AuthRespond: Method, Equatable {
    public static let name = "auth/respond"
    public static let access = MethodAccess.everyClient

    public var challengeID: String
    /// The answer; `nil` if it is invalid. The challenge then remains open, and `problem` is the reason.
    public var answer: AgentAnswer?
    public var problem: String?

    public init(_ members: Members) throws(InvalidParams) {
        challengeID = try members.required("challengeId", members.string("challengeId"))
        let json = try members.required("answer", members["answer"])
        do {
            answer = try AgentAnswer(json)
        } catch {
            problem = error.detail
        }
    }

    public static func json(_ result: AuthRespondResult) -> JSON {
        switch result {
        case .accepted: ["accepted": true]
        case .gone: ["accepted": false, "reason": "gone"]
        case .answered: ["accepted": false, "reason": "answered"]
        case .invalid(let problem): ["accepted": false, "reason": "invalid", "detail": .string(problem)]
        }
    }
}

/// The outcome of `auth/respond`.
public enum AuthRespondResult: Sendable, Equatable {
    case accepted
    /// The challenge never existed, or its fetch has ended.
    case gone
    /// The challenge was already answered, or its deadline has passed.
    case answered
    case invalid(problem: String)
}

/// `auth/listPending`: lists the open challenges of the connection.
public struct AuthListPending: ParameterlessMethod {
    public static let name = "auth/listPending"
    public static let access = MethodAccess.everyClient
    public init() {}

    public static func json(_ challenges: [AuthChallengeParams]) -> JSON {
        ["challenges": .array(challenges.map(\.json))]
    }
}

/// The reply to `auth/canAuthenticate`, `auth/useStorage` and `fetch/approveRedirect`.
public struct ConsultationReply: Sendable, Equatable {
    public var answer: Bool

    /// Parses a reply. An unknown member makes it invalid, as in all answers.
    /// - Parameter member: `answer`, or `approve` for `fetch/approveRedirect`.
    public init(_ json: JSON?, _ member: String = "answer") throws(InvalidParams) {
        let members = try Members(json, at: "answer")
        answer = try members.required(member, members.boolean(member))
        try members.refuseUnread()
    }
}

/// `agent/register`: registers the connection as an agent, which prompts a person.
public struct AgentRegister: Method, Equatable {
    public static let name = "agent/register"

    public var name: String
    /// The locale of the person, such as `de_DE`.
    public var locale: String?
    /// The agent with the highest priority is asked first; among equals, the one registered first.
    public var priority: Int
    /// The methods whose challenges the agent answers; `nil` means all.
    public var methods: [AuthenticationMethod]?
    /// Whether the agent answers `auth/confirm`.
    public var asksConfirm: Bool
    /// Whether the agent answers `auth/prompt`.
    public var asksPrompt: Bool
    /// The number of simultaneous questions the agent accepts; `nil` for no limit.
    public var maxPending: Int?

    public init(_ members: Members) throws(InvalidParams) {
        asksConfirm = try members.boolean("asksConfirm") ?? false
        asksPrompt = try members.boolean("asksPrompt") ?? false
        name = try members.required("name", members.string("name"))
        locale = try members.string("locale")
        priority = try members.integer("priority", in: -1_000_000...1_000_000) ?? 0
        methods = try members.choices("methods", as: AuthenticationMethod.self)
        maxPending = try members.integer("maxPending", in: Limits.pendingQuestions)
    }
    public static func json(_ agentID: String) -> JSON { ["agentId": .string(agentID)] }
}

/// `agent/unregister`: ends the registration. Open questions are passed to other respondents.
public struct AgentUnregister: ParameterlessMethod {
    public static let name = "agent/unregister"
    public init() {}
}
