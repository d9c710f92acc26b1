public import JSONText

/// `auth/subscribe`: which challenges of its own fetches a client answers, and how.
public struct AuthSubscribeParams: Sendable, Equatable {
    /// `nil` keeps the delivery of `initialize`.
    public var delivery: ChallengeDelivery?
    public var methods: [AuthenticationMethod]?
    public var hosts: [HostPattern]?
    public var mode: ChallengeMode
    public var asksCanAuthenticate: Bool
    public var asksUseStorage: Bool
    public var asksNeedBody: Bool
    public var approvesRedirects: Bool
    /// How many questions it takes at once; `nil` without a limit.
    public var maxPending: Int?

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
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

    /// The subscription of a client that has had `delivery` so far.
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
    /// `auth.handler` of a fetch: which challenges of this fetch it answers, and how.
    init(handler members: Members) throws(InvalidParams) {
        try members.refuseMembers(otherThan: ["delivery", "methods", "mode"])
        let delivery = try members.choice("delivery", as: ChallengeDelivery.self) ?? .request
        guard [.request, .notification].contains(delivery) else {
            throw members.wrong("delivery", "one of: request, notification")
        }
        self.init(
            delivery: delivery, methods: try members.choices("methods", as: AuthenticationMethod.self),
            mode: try members.choice("mode", as: ChallengeMode.self) ?? .classic)
    }

    /// As `auth.handler` of a fetch.
    var handlerJSON: JSON {
        [
            "delivery": .string(delivery.rawValue),
            "methods": methods.map { .array($0.map { .string($0.rawValue) }) }, "mode": .string(mode.rawValue),
        ]
    }
}

/// `agent/register`: a program of the desktop that asks people.
public struct AgentRegisterParams: Sendable, Equatable {
    public var name: String
    /// Of the person, for texts: `de_DE`.
    public var locale: String?
    /// The highest is asked first; among equals whoever registered first.
    public var priority: Int
    /// `nil` means all.
    public var methods: [AuthenticationMethod]?
    /// It answers `auth/confirm`.
    public var asksConfirm: Bool
    /// How many questions it takes at once; `nil` without a limit.
    public var maxPending: Int?

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
        asksConfirm = try members.boolean("asksConfirm") ?? false
        name = try members.required("name", members.string("name"))
        locale = try members.string("locale")
        priority = try members.integer("priority", in: -1_000_000...1_000_000) ?? 0
        methods = try members.choices("methods", as: AuthenticationMethod.self)
        maxPending = try members.integer("maxPending", in: Limits.pendingQuestions)
    }
}

/// The second half of a `fetch/run` whose first half ended with `authRequired`.
public struct FetchResumeParams: Sendable, Equatable {
    public var resume: String
    public var answer: ChallengeAnswer

    /// `nil` for parameters that do not name a resume token.
    public init?(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
        guard let token = try members.string("resume") else { return nil }
        try members.refuseMembers(otherThan: ["resume", "answer"])
        resume = token
        answer = try ChallengeAnswer(members.required("answer", members["answer"]))
    }
}

/// The reply to `auth/canAuthenticate` and `auth/useStorage`.
public struct ConsultationReply: Sendable, Equatable {
    public var answer: Bool

    /// Strict, as all answers are.
    /// - Parameter member: `answer`, or `approve` of a redirect.
    public init(_ json: JSON?, _ member: String = "answer") throws(InvalidParams) {
        let members = try Members(json, at: "answer")
        try members.refuseMembers(otherThan: [member])
        answer = try members.required(member, members.boolean(member))
    }
}

/// `events/subscribe`: which events a client wants to hear of.
public struct EventsSubscribeParams: Sendable, Equatable {
    /// All unless given; none with an empty list.
    public var kinds: Set<AuditEvent.Kind>

    /// - Throws: `InvalidParams`.
    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
        guard let elements = try members.elements("kinds") else {
            kinds = Set(AuditEvent.Kind.allCases)
            return
        }
        kinds = []
        for element in elements {
            guard let kind = element.string.flatMap(AuditEvent.Kind.init) else {
                let names = AuditEvent.Kind.allCases.map(\.rawValue).joined(separator: ", ")
                throw members.wrong("kinds", "a list of: \(names)")
            }
            kinds.insert(kind)
        }
    }
}
