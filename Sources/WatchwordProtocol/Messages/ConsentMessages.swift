public import JSONText

/// That a program is to use something that is kept: what a person has to know to say yes or no.
public struct ConsentRequest: Sendable, Equatable {
    public var subject: Subject
    public var space: ProtectionSpace
    /// `nil` for a token, a certificate, tickets.
    public var user: ExactText?
    /// `session`, `keyring`, `ambient` or `netrc`.
    public var source: CredentialSource
    public var url: String
    public var method: String

    public init(
        subject: Subject, space: ProtectionSpace, user: ExactText?, source: CredentialSource, url: String,
        method: String
    ) {
        self.subject = subject
        self.space = space
        self.user = user
        self.source = source
        self.url = url
        self.method = method
    }
}

/// `auth/confirm`: whether a program may use something that is kept.
public struct AuthConfirmParams: Sendable, Equatable {
    public var confirmID: String
    public var fetchID: String
    public var requester: Requester
    public var request: ConsentRequest
    /// From now until the broker asks somebody else, or goes on as after a no.
    public var deadlineMs: Int

    public init(
        confirmID: String, fetchID: String, requester: Requester, request: ConsentRequest, deadlineMs: Int
    ) {
        self.confirmID = confirmID
        self.fetchID = fetchID
        self.requester = requester
        self.request = request
        self.deadlineMs = deadlineMs
    }

    public var json: JSON {
        [
            "confirmId": .string(confirmID), "fetchId": .string(fetchID), "requester": requester.json,
            "subject": request.subject.json, "protectionSpace": request.space.json,
            "user": request.user?.json ?? .null, "source": .string(request.source.rawValue),
            "url": .string(request.url), "method": .string(request.method),
            "allows": .array(request.subject.allowedConsents.map { .string($0.rawValue) }),
            "deadlineMs": .integer(deadlineMs),
        ]
    }
}

/// The reply to `auth/confirm`.
public struct ConfirmReply: Sendable, Equatable {
    public var consent: Consent
    /// Only beside `no`: the questions of this program are put to no agent any more.
    public var stopsAsking: Bool

    /// Strict, as all answers are.
    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json, at: "answer")
        consent = try members.required("allow", members.choice("allow", as: Consent.self))
        try members.refuseMembers(otherThan: consent == .no ? ["allow", "stopAsking"] : ["allow"])
        stopsAsking = try members.boolean("stopAsking") ?? false
    }
}

/// One of the grants of `grant/list`.
public struct GrantDescription: Sendable, Equatable {
    /// Names it for as long as the broker runs.
    public var id: Int
    public var subject: Subject
    public var space: ProtectionSpace
    public var user: ExactText?
    /// `session`, `always` or `no`.
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

/// `grant/revoke`: one grant, all of a program, or all.
public struct GrantRevokeParams: Sendable, Equatable {
    public var id: Int?
    /// As `Subject.text` has it.
    public var subject: ExactText?

    /// - Throws: `InvalidParams`.
    public init(_ json: JSON?) throws(InvalidParams) {
        let members = try Members(json, only: ["id", "subject"])
        subject = try members.exactText("subject")
        guard let text = try members.string("id") else { return }
        guard subject == nil else { throw InvalidParams("params has both an id and a subject; one says what is meant") }
        guard text.hasPrefix("g"), let number = Int(text.dropFirst()), number > 0 else {
            throw members.wrong("id", "an id of grant/list")
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
}

extension Subject {
    public var json: JSON {
        [
            "id": text.json, "kind": .string(kind.rawValue), "strength": .string(strength.rawValue),
            "sandboxed": .boolean(isSandboxed),
        ]
    }
}
