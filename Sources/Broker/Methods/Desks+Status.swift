internal import Glibc
internal import WatchwordCore
internal import WatchwordProtocol

extension Desks {
    func status() -> BrokerStatus {
        fetches.report { $0.tick($1) }
        let (figures, times) = (fetches.ports.transfers.figures, fetches.ports.loop.turnTimes)
        var status = BrokerStatus()
        status.version = context.options.version
        status.pid = Int(getpid())
        status.uptime = context.now
        status.connections = clients.all.count
        status.fetches = (fetches.table.count, fetches.table.waitingCount)
        status.pendingChallenges = questions.all { $0.challenge != nil }.count
        status.counters = audit.counters
        status.counters.ignoredMessages += clients.all.reduce(0) { $0 + $1.ignoredMessages }
        status.session = (fetches.table.sessionCount, fetches.table.isLocked)
        status.keyring = keyring.status
        status.agents = clients.all.compactMap(\.profile.agent).sorted { $0.number < $1.number }.map { agent in
            (agent.number, agent.name, agent.locale, agent.priority)
        }
        status.engine = (
            figures.engine, figures.running, figures.finished, figures.connectionsOpened, figures.connectionsReused
        )
        status.loop = times
        status.proxy = context.options.proxy.endpoint?.text
        status.upstreams = upstreamStatus
        status.filtersSystemCalls = context.options.filtersSystemCalls
        return status
    }

    private var upstreamStatus: BrokerStatus.Upstreams {
        var status = BrokerStatus.Upstreams()
        status.rules = context.options.proxy.rules.count
        switch context.options.upstreamSource {
        case .pac(let url)?: status.script = ScriptURL.display(url)
        case .desktop?: status.usesDesktop = true
        case nil: break
        }
        status.problem = upstreams.problem
        status.failed = fetches.table.unreachableProxies.map(\.text)
        return status
    }
}
