public import JSONText

/// `ping`: checks that the broker replies.
public struct Ping: ParameterlessMethod {
    public static let name = "ping"
    public static let access = MethodAccess.everyClient
    public init() {}
}

/// `rpc.discover`: returns the OpenRPC document.
public struct Discover: ParameterlessMethod {
    public static let name = "rpc.discover"
    public static let access = MethodAccess.everyClient
    public init() {}
    public static func json(_ document: JSON) -> JSON { document }
}

/// `server/status`: returns the state of the broker.
public struct ServerStatus: ParameterlessMethod {
    public static let name = "server/status"
    public init() {}
    public static func json(_ status: BrokerStatus) -> JSON { status.json }
}

/// The event counters of the broker.
public struct BrokerCounters: Sendable {
    public var fetchesDone = 0
    public var challengesAsked = 0
    public var challengesAnswered = 0
    public var challengesTimedOut = 0
    public var answeredFrom: [CredentialSource: Int] = [:]
    public var ignoredMessages = 0

    public init() {}
}

/// The state of the broker, as `server/status` returns it.
public struct BrokerStatus: Sendable {
    public var version = ""
    public var pid = 0
    public var uptime = Duration.zero
    public var connections = 0
    public var fetches = (running: 0, waiting: 0)
    public var pendingChallenges = 0
    public var counters = BrokerCounters()
    public var session = (entries: 0, isLocked: false)
    public var keyring = KeyringDescription.unknown
    public var agents: [(number: Int, name: String, locale: String?, priority: Int)] = []
    public var engine = (name: "", running: 0, finished: 0, opened: 0, reused: 0)
    /// A histogram of the durations of event loop iterations: upper bounds in milliseconds, and a count for each interval.
    public var loop: (bounds: [Int], counts: [Int], longest: Duration) = ([], [], .zero)
    public var proxy: String?
    public var upstreams = Upstreams()
    public var filtersSystemCalls = false

    public init() {}

    var json: JSON {
        [
            "version": .string(version), "protocolVersion": .integer(Initialize.protocolVersion),
            "pid": .integer(pid), "uptimeMs": .integer(uptime.wholeMilliseconds),
            "connections": .integer(connections),
            "fetches": [
                "running": .integer(fetches.running), "waiting": .integer(fetches.waiting),
                "done": .integer(counters.fetchesDone),
            ],
            "challenges": [
                "pending": .integer(pendingChallenges), "asked": .integer(counters.challengesAsked),
                "answered": .integer(counters.challengesAnswered), "timedOut": .integer(counters.challengesTimedOut),
            ],
            "answeredFrom": .object(
                CredentialSource.allCases.map { ($0.rawValue, .integer(counters.answeredFrom[$0] ?? 0)) }),
            "session": ["entries": .integer(session.entries), "locked": .boolean(session.isLocked)],
            "keyring": keyring.json,
            "agents": .array(
                agents.map { agent in
                    [
                        "agentId": .string("a\(agent.number)"), "name": .string(agent.name),
                        "locale": agent.locale.map { .string($0) }, "priority": .integer(agent.priority),
                    ]
                }),
            "engine": [
                "name": .string(engine.name), "running": .integer(engine.running),
                "finished": .integer(engine.finished), "connectionsOpened": .integer(engine.opened),
                "connectionsReused": .integer(engine.reused),
            ],
            "loop": [
                "boundsMs": .array(loop.bounds.map { .integer($0) }), "turns": .array(loop.counts.map { .integer($0) }),
                "longestMs": .integer(loop.longest.wholeMilliseconds),
            ],
            "ignoredMessages": .integer(counters.ignoredMessages), "proxy": proxy.map { .string($0) } ?? .null,
            "upstreams": upstreams.json,
            "systemCallFilter": .boolean(filtersSystemCalls),
        ]
    }
}

extension BrokerStatus {
    /// The choice of upstream proxies.
    public struct Upstreams: Sendable {
        /// The number of rules in the configuration.
        public var rules = 0
        /// The URL of the PAC file, if the configuration names one.
        public var script: String?
        /// Whether the settings of the desktop are used.
        public var usesDesktop = false
        /// Why the PAC file or the settings of the desktop cannot be used, if they could not when they were last needed.
        public var problem: String?
        /// The URLs of proxies that could not be reached lately.
        public var failed: [String] = []

        public init() {}

        var json: JSON {
            [
                "rules": .integer(rules), "pac": script.map { .string($0) }, "desktop": .boolean(usesDesktop),
                "problem": problem.map { .string($0) }, "unreachable": .array(failed.map { .string($0) }),
            ]
        }
    }
}

/// `initialize`: identifies the client, and optionally subscribes it to challenges.
public struct Initialize: CallableMethod, Equatable {
    public static let name = "initialize"
    public static let access = MethodAccess.everyClient
    /// The only version of the protocol.
    public static let protocolVersion = 1

    public var clientName: String
    public var clientVersion: String?
    /// The delivery of challenges; `nil` if the client did not name the `challenge` capability and is not subscribed.
    public var delivery: ChallengeDelivery?

    public init(clientName: String, clientVersion: String?, delivery: ChallengeDelivery?) {
        self.clientName = clientName
        self.clientVersion = clientVersion
        self.delivery = delivery
    }

    public init(_ members: Members) throws(InvalidParams) {
        let client = try members.required("client", members.object("client"))
        clientName = try client.required("name", client.string("name"))
        clientVersion = try client.string("version")
        _ = try members.required("protocolVersion", members.integer("protocolVersion", in: 1...1))
        let challenge = try members.object("capabilities")?.object("challenge")
        delivery = try challenge.map { members throws(InvalidParams) in
            try members.choice("delivery", as: ChallengeDelivery.self) ?? .request
        }
    }

    public var json: JSON {
        [
            "client": ["name": .string(clientName), "version": clientVersion.map { .string($0) }],
            "protocolVersion": .integer(Self.protocolVersion),
            "capabilities": ["challenge": delivery.map { ["delivery": .string($0.rawValue)] }],
        ]
    }

    /// Returns the result.
    /// - Parameter version: The version of the broker.
    public static func json(_ version: String) -> JSON {
        [
            "broker": ["name": "watchwordd", "version": .string(version)],
            "protocolVersion": .integer(protocolVersion),
            "capabilities": [
                "challenge": ["deliveries": .array(ChallengeDelivery.allCases.map { .string($0.rawValue) })],
                "authenticationMethods": .array(AuthenticationMethod.allCases.map { .string($0.rawValue) }),
                "credentialTypes": ["password", "token", "header", "certificate", "trust", "proposed"],
                "limits": [
                    "messageBytes": .integer(Limits.messageBytes), "depth": .integer(Limits.messageDepth),
                    "batch": .integer(Limits.batchEntries), "requestsInFlight": .integer(Limits.requestsInFlight),
                    "inlineBodyBytes": .integer(Limits.inlineBodyBytes),
                ],
            ],
        ]
    }
}

/// `events/subscribe`: selects the events that a client receives.
public struct EventsSubscribe: Method, Equatable {
    public static let name = "events/subscribe"

    /// The kinds of events; all by default, none for an empty list.
    public var kinds: Set<AuditEvent.Kind>

    public init(_ members: Members) throws(InvalidParams) {
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
