public import JSONText

/// A grant in `grant/list`.
public struct GrantDescription: Sendable, Equatable {
    /// The number of the grant, valid until the broker exits.
    public var id: Int
    public var subject: Subject
    public var space: ProtectionSpace
    public var user: ExactText?
    /// The decision: `session`, `always` or `no`.
    public var consent: Consent

    public init(id: Int, subject: Subject, space: ProtectionSpace, user: ExactText?, consent: Consent) {
        self.id = id
        self.subject = subject
        self.space = space
        self.user = user
        self.consent = consent
    }

    public var json: JSON {
        [
            "id": .string("g\(id)"), "subject": subject.json, "protectionSpace": space.json,
            "user": user?.json ?? .null, "allow": .string(consent.rawValue),
        ]
    }
}

/// `grant/list`: lists which program may use which login.
public struct GrantList: ParameterlessMethod {
    public static let name = "grant/list"
    public init() {}
    public static func json(_ grants: [GrantDescription]) -> JSON { ["grants": .array(grants.map(\.json))] }
}

/// `grant/revoke`: revokes one grant, all grants of a program, or all grants.
public struct GrantRevoke: CallableMethod, Equatable {
    public static let name = "grant/revoke"

    public var id: Int?
    /// The program, as in `Subject.text`.
    public var subject: ExactText?

    public init(_ members: Members) throws(InvalidParams) {
        subject = try members.exactText("subject")
        guard let text = try members.string("id") else { return }
        guard subject == nil else { throw InvalidParams("params must contain either id or subject, not both") }
        guard text.hasPrefix("g"), let number = Int(text.dropFirst()), number > 0 else {
            throw members.wrong("id", "an id from grant/list")
        }
        id = number
    }

    public init(id: Int? = nil, subject: ExactText? = nil) {
        self.id = id
        self.subject = subject
    }

    public var json: JSON {
        ["id": id.map { .string("g\($0)") }, "subject": subject?.json]
    }

    public static func json(_ removed: Int) -> JSON { ["removed": .integer(removed)] }
}
