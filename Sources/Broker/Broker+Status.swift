internal import Glibc
internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// What the broker counts of itself.
struct BrokerCounters {
    var fetchesDone = 0
    var challengesAsked = 0
    var challengesAnswered = 0
    var challengesTimedOut = 0
    var answeredFrom: [CredentialSource: Int] = [:]
    /// Of connections that are closed; the open ones count for themselves.
    var ignoredReplies = 0
}

extension Router {
    /// The result of `server/status`.
    func status() -> JSON {
        let figures = transfers.figures
        perform(table.tick(environment))
        let sources = JSON.object(
            CredentialSource.allCases.map { ($0.rawValue, .integer(audit.counters.answeredFrom[$0] ?? 0)) })
        let ignored = clients.all.reduce(audit.counters.ignoredReplies) { $0 + $1.ignoredReplies }
        return [
            "version": .string(options.version),
            "protocolVersion": .integer(InitializeParams.protocolVersion),
            "pid": .integer(Int(getpid())),
            "uptimeMs": .integer(clock.now.wholeMilliseconds),
            "connections": .integer(clients.all.count),
            "fetches": [
                "running": .integer(fetches.count), "waiting": .integer(table.waitingCount),
                "done": .integer(audit.counters.fetchesDone),
            ],
            "challenges": [
                "pending": .integer(questions.all { $0.challenge != nil }.count),
                "asked": .integer(audit.counters.challengesAsked),
                "answered": .integer(audit.counters.challengesAnswered),
                "timedOut": .integer(audit.counters.challengesTimedOut),
            ],
            "answeredFrom": sources,
            "session": ["entries": .integer(table.sessionCount), "locked": .boolean(table.isLocked)],
            "keyring": keyring.status,
            "agents": .array(agents()),
            "engine": [
                "name": .string(figures.engine), "running": .integer(figures.running),
                "finished": .integer(figures.finished),
                "connectionsOpened": .integer(figures.connectionsOpened),
                "connectionsReused": .integer(figures.connectionsReused),
            ],
            "loop": loopStatus(),
            "ignoredReplies": .integer(ignored),
            "proxy": options.proxy.endpoint.map { .string($0.text) } ?? .null,
            "systemCallFilter": .boolean(options.filtersSystemCalls),
        ]
    }

    private func loopStatus() -> JSON {
        let times = loop.turnTimes
        return [
            "boundsMs": .array(times.bounds.map { .integer($0) }),
            "turns": .array(times.counts.map { .integer($0) }),
            "longestMs": .integer(times.longest.wholeMilliseconds),
        ]
    }

    private func agents() -> [JSON] {
        clients.all.compactMap(\.agent).sorted { $0.number < $1.number }.map { agent in
            [
                "agentId": .string("a\(agent.number)"), "name": .string(agent.name),
                "locale": agent.locale.map { .string($0) }, "priority": .integer(agent.priority),
            ]
        }
    }
}
