internal import Glibc
internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// What the broker counts of itself.
struct BrokerCounters {
    var fetchesStarted = 0
    var fetchesDone = 0
    var challengesAsked = 0
    var challengesAnswered = 0
    var challengesTimedOut = 0
    var answeredFrom: [CredentialSource: Int] = [:]
    /// Of connections that are closed; the open ones count for themselves.
    var ignoredReplies = 0
}

extension Broker {
    /// The result of `server/status`.
    func status() -> JSON {
        let figures = transfers.figures
        session.expire(now: clock.now)
        let sources = CredentialSource.allCases.reduce(JSON.object([:])) { object, source in
            object.adding([source.rawValue: .integer(counters.answeredFrom[source] ?? 0)])
        }
        let ignored = connections.values.reduce(counters.ignoredReplies) { $0 + $1.ignoredReplies }
        return [
            "version": .string(options.version),
            "protocolVersion": .integer(InitializeParams.protocolVersion),
            "pid": .integer(Int(getpid())),
            "uptimeMs": .integer(clock.now.wholeMilliseconds),
            "connections": .integer(connections.count),
            "fetches": ["running": .integer(fetches.count), "done": .integer(counters.fetchesDone)],
            "challenges": [
                "pending": .integer(questions.count), "asked": .integer(counters.challengesAsked),
                "answered": .integer(counters.challengesAnswered),
                "timedOut": .integer(counters.challengesTimedOut),
            ],
            "answeredFrom": sources,
            "session": ["entries": .integer(session.count)],
            "keyring": [
                "state": "unavailable",
                "reason": "This version keeps credentials for the session only; it does not use a keyring yet.",
            ],
            "engine": [
                "name": .string(figures.engine), "running": .integer(figures.running),
                "finished": .integer(figures.finished),
                "connectionsOpened": .integer(figures.connectionsOpened),
                "connectionsReused": .integer(figures.connectionsReused),
            ],
            "ignoredReplies": .integer(ignored),
        ]
    }
}
