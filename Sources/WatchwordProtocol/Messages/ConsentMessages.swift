public import JSONText

/// A program's use of a stored or ambient credential, as described to the person who decides about it.
public struct ConsentRequest: Sendable, Equatable {
    public var subject: Subject
    public var space: ProtectionSpace
    /// The user of the credential; `nil` for a token, a certificate, or Kerberos tickets.
    public var user: ExactText?
    /// The source of the credential: `session`, `keyring`, `ambient`, `netrc` or `command`.
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

/// The parameters of `auth/confirm`, which asks whether a program may use a stored or ambient credential.
public struct AuthConfirmParams: Sendable, Equatable {
    public var confirmID: String
    public var fetchID: String
    public var requester: Requester
    public var request: ConsentRequest
    /// Milliseconds from now until the broker asks the next agent, or continues as after `no`.
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
public struct ConfirmReply: ClientValue, Sendable, Equatable {
    public var consent: Consent
    /// Whether agents receive no further questions of this program. Only valid with `no`.
    public var stopsAsking: Bool

    public static var path: String { "answer" }

    public init(_ members: Members) throws(InvalidParams) {
        consent = try members.required("allow", members.choice("allow", as: Consent.self))
        stopsAsking = consent == .no ? try members.boolean("stopAsking") ?? false : false
    }
}

extension Subject {
    public var json: JSON {
        [
            "id": text.json, "kind": .string(kind.rawValue), "strength": .string(strength.rawValue),
            "sandboxed": .boolean(isSandboxed), "script": script?.json,
        ]
    }
}

extension Subject.Script {
    var json: JSON { ["path": .string(path.string.shortened(to: 512))] }
}
