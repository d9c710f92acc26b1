public import JSONText

/// The program that a fetch is for, as far as the broker can determine it.
public struct Requester: Sendable, Equatable {
    /// The name that the client gave in `initialize`.
    public var name: String?
    public var pid: Int
    /// The program behind the client, as far as the kernel identifies it.
    public var subject: Subject
    /// Whether the client uses the restricted socket. If so, it may run in a container or on another machine, and `pid`
    /// may be a process that only forwards its connection.
    public var isRestricted: Bool

    public init(name: String?, pid: Int, subject: Subject, isRestricted: Bool = false) {
        self.name = name
        self.pid = pid
        self.subject = subject
        self.isRestricted = isRestricted
    }

    public var json: JSON {
        [
            "name": name.map { .string($0) } ?? .null, "pid": .integer(pid),
            "subject": .string(subject.text.string.shortened(to: 512)),
            "script": subject.script?.json, "restricted": isRestricted ? true : nil,
        ]
    }
}

/// The parameters of the request `auth/challenge` and of the equivalent notification `auth/pending`.
public struct AuthChallengeParams: Sendable, Equatable {
    public var challengeID: String
    public var fetchID: String
    public var challenge: Challenge
    public var requester: Requester
    /// The id of the request that started the fetch, if the challenge is for the handler of that fetch.
    public var handledRequest: RequestID?
    /// Milliseconds from now until the broker continues without an answer.
    public var deadlineMs: Int

    public init(challengeID: String, fetchID: String, challenge: Challenge, requester: Requester, deadlineMs: Int) {
        self.challengeID = challengeID
        self.fetchID = fetchID
        self.challenge = challenge
        self.requester = requester
        self.deadlineMs = deadlineMs
    }

    public var json: JSON {
        let names: JSON = ["challengeId": .string(challengeID), "fetchId": .string(fetchID)]
        return names.adding(challenge.json).adding([
            "handler": handledRequest.map { _ in "fetch" }, "requestId": handledRequest?.json,
            "requester": requester.json, "deadlineMs": .integer(deadlineMs),
        ])
    }
}
