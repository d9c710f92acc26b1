internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// The desk of the connections: it owns them, their programs and their quotas, knows which of them are agents, and tells all of
/// them what concerns everybody. What a client is asked, and what it fetches, is with other desks.
final class ClientRegistry {
    let context: DeskContext
    let way: WayBack<ClientRegistry>
    private let audit: AuditRecorder
    private(set) var connections: [ConnectionID: ClientConnection] = [:]
    /// By process, for as long as it has connections.
    private(set) var programs: [Int32: ClientProgram] = [:]
    private let everybody: Holdings
    private var lastConnection = 0
    private var lastAgent = 0
    var isWatchingSenders = false

    init(_ context: DeskContext, _ audit: AuditRecorder, _ way: WayBack<ClientRegistry>) {
        (self.context, self.audit, self.way) = (context, audit, way)
        everybody = Holdings(of: .everybody, context.options.holdingLimits)
    }

    subscript(id: ConnectionID) -> ClientConnection? { connections[id] }

    var all: Dictionary<ConnectionID, ClientConnection>.Values { connections.values }

    /// - Parameter left: the program of this process, where it has no connection and still uses something.
    func open(_ link: any ClientLink, peer: PeerIdentity, left: @autoclosure () -> ClientProgram?) -> ConnectionID {
        lastConnection += 1
        let id = ConnectionID(value: lastConnection)
        let tag = ProgramTag(value: lastConnection)
        let limits = context.options.holdingLimits
        let program = programs[peer.pid] ?? left() ?? ClientProgram(tag, limits, within: everybody)
        programs[peer.pid] = program
        program.connectionCount += 1
        connections[id] = ClientConnection(id: id, peer: peer, link: link, program: program, limits)
        context.log.debug("connection opened", metadata: ["connection": "\(id.value)", "pid": "\(peer.pid)"])
        return id
    }

    /// The connection has ended. Returns what it was.
    func remove(_ id: ConnectionID) -> ClientConnection? {
        guard let connection = connections.removeValue(forKey: id) else { return nil }
        connection.program.connectionCount -= 1
        if connection.program.connectionCount == 0 { programs[connection.peer.pid] = nil }
        audit.forget(connection)
        context.log.debug(
            "connection closed", metadata: ["connection": "\(id.value)", "fetches": "\(connection.fetches.count)"])
        return connection
    }

    /// Answers a call of a connection that may have ended meanwhile.
    func complete(_ call: CallID, of id: ConnectionID, _ result: Result<JSON, RPCError>) {
        connections[id]?.complete(call, result)
    }

    /// The client that gets the reply.
    func owner(of fetch: RunningFetch) -> ClientConnection? { fetch.owner.flatMap { connections[$0.connection] } }

    // MARK: To all

    /// To everybody who has introduced himself: windows that show what is stored are drawn anew.
    func announce(_ change: CredentialChange, _ cause: Cause) {
        audit.record(change, cause)
        tell(change)
    }

    /// The same of what is no doing of the broker, and not in the audit log.
    func tell(_ change: CredentialChange) {
        let params: JSON = [
            "change": .string(change.kind.rawValue), "source": .string(change.source.rawValue),
            "user": change.user?.json, "protectionSpace": change.space?.json,
        ]
        for connection in connections.values where connection.profile.isInitialized && !connection.isConfined {
            connection.notify(.credentialChanged, params)
        }
    }

    // MARK: Agents

    func register(_ params: AgentRegisterParams, _ connection: ClientConnection) throws -> JSON {
        guard connection.profile.agent == nil else {
            throw RPCError(.invalidRequest, "this connection is an agent already")
        }
        guard connections.values.count(where: { $0.profile.agent != nil }) < Limits.agents else {
            throw RPCError(.busy, "There are \(Limits.agents) agents already.")
        }
        lastAgent += 1
        connection.profile.agent = AgentRegistration(
            number: lastAgent, name: params.name.shortened, locale: params.locale?.shortened,
            priority: params.priority, methods: params.methods, maxPending: params.maxPending,
            asksConfirm: params.asksConfirm)
        context.log.notice("agent registered", metadata: ["agent": "a\(lastAgent)", "pid": "\(connection.peer.pid)"])
        return ["agentId": .string("a\(lastAgent)")]
    }

    func agent(for challenge: Challenge, after passed: Set<ConnectionID>) -> ClientConnection? {
        agents(after: passed).first { $0.profile.agent?.covers(challenge.protectionSpace) ?? false }
    }

    /// Nobody consents to what its own process wants.
    func confirmer(for fetch: RunningFetch, after passed: Set<ConnectionID>) -> ClientConnection? {
        let asker = owner(of: fetch)?.peer.pid
        return agents(after: passed).first { $0.profile.agent?.asksConfirm == true && $0.peer.pid != asker }
    }

    /// The one that has the question.
    func agent(of question: PendingQuestion) -> ClientConnection? {
        if case .agent(let id) = question.place { connections[id] } else { nil }
    }

    /// Those that can be asked, the first one first.
    private func agents(after passed: Set<ConnectionID>) -> [ClientConnection] {
        connections.values.filter { $0.profile.agent != nil && !$0.hasInputEnded && !passed.contains($0.id) }
            .sorted { ($0.profile.agent?.order ?? (0, 0)) < ($1.profile.agent?.order ?? (0, 0)) }
    }
}

extension AgentRegistration {
    /// The lowest is asked first.
    fileprivate var order: (Int, Int) { (-priority, number) }
}
