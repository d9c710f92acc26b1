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

extension Broker {
    /// The result of `server/status`.
    func status() -> JSON {
        let figures = desks.fetches.ports.transfers.figures
        desks.fetches.report { $0.tick($1) }
        let sources = JSON.object(
            CredentialSource.allCases.map { ($0.rawValue, .integer(desks.audit.counters.answeredFrom[$0] ?? 0)) })
        let ignored = desks.clients.all.reduce(desks.audit.counters.ignoredReplies) { $0 + $1.ignoredReplies }
        return [
            "version": .string(desks.context.options.version),
            "protocolVersion": .integer(InitializeParams.protocolVersion),
            "pid": .integer(Int(getpid())),
            "uptimeMs": .integer(desks.context.now.wholeMilliseconds),
            "connections": .integer(desks.clients.all.count),
            "fetches": [
                "running": .integer(desks.fetches.all.count), "waiting": .integer(desks.fetches.table.waitingCount),
                "done": .integer(desks.audit.counters.fetchesDone),
            ],
            "challenges": [
                "pending": .integer(desks.questions.all { $0.challenge != nil }.count),
                "asked": .integer(desks.audit.counters.challengesAsked),
                "answered": .integer(desks.audit.counters.challengesAnswered),
                "timedOut": .integer(desks.audit.counters.challengesTimedOut),
            ],
            "answeredFrom": sources,
            "session": [
                "entries": .integer(desks.fetches.table.sessionCount), "locked": .boolean(desks.fetches.table.isLocked),
            ],
            "keyring": desks.keyring.status,
            "agents": .array(agents()),
            "engine": [
                "name": .string(figures.engine), "running": .integer(figures.running),
                "finished": .integer(figures.finished),
                "connectionsOpened": .integer(figures.connectionsOpened),
                "connectionsReused": .integer(figures.connectionsReused),
            ],
            "loop": loopStatus(),
            "ignoredReplies": .integer(ignored),
            "proxy": desks.context.options.proxy.endpoint.map { .string($0.text) } ?? .null,
            "systemCallFilter": .boolean(desks.context.options.filtersSystemCalls),
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
        desks.clients.all.compactMap(\.profile.agent).sorted { $0.number < $1.number }.map { agent in
            [
                "agentId": .string("a\(agent.number)"), "name": .string(agent.name),
                "locale": agent.locale.map { .string($0) }, "priority": .integer(agent.priority),
            ]
        }
    }
}
