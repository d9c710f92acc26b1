public import JSONText

/// Which program a fetch is for, as far as the broker can tell.
public struct Requester: Sendable, Equatable {
    /// What the client called itself in `initialize`.
    public var name: String?
    public var pid: Int
    /// On whose behalf it speaks, as far as the kernel tells.
    public var subject: Subject
    /// It came through the restricted socket: from a container or another machine, whose door `pid` may be.
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
            "restricted": isRestricted ? true : nil,
        ]
    }
}

/// `auth/challenge` and its twin `auth/pending`.
public struct AuthChallengeParams: Sendable, Equatable {
    public var challengeID: String
    public var fetchID: String
    public var challenge: Challenge
    public var requester: Requester
    /// The request of the fetch, where the challenge is for the handler that came with it.
    public var handledRequest: RequestID?
    /// From now until the broker goes on without an answer.
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
