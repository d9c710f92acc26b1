public import JSONText

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

    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json)
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
