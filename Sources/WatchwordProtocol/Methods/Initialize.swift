public import JSONText

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

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
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
