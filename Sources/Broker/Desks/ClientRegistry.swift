internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Owns the connections, their programs and quotas, and the list of agents. Sends the notifications that go to all
/// clients. The questions and fetches of a client belong to other desks.
final class ClientRegistry {
    let context: DeskContext
    let reference: DeskReference<ClientRegistry>
    private let audit: AuditRecorder
    private(set) var connections: [ConnectionID: ClientConnection] = [:]
    /// The client processes with open connections, by PID.
    private(set) var programs: [Int32: ClientProgram] = [:]
    private let allPrograms: ClientQuotas
    private var lastConnection = 0
    private var lastAgent = 0
    var isWatchingSenders = false

    init(_ context: DeskContext, _ audit: AuditRecorder, _ reference: DeskReference<ClientRegistry>) {
        (self.context, self.audit, self.reference) = (context, audit, reference)
        allPrograms = ClientQuotas(of: .allPrograms, context.options.quotaLimits)
    }

    subscript(id: ConnectionID) -> ClientConnection? { connections[id] }

    var all: Dictionary<ConnectionID, ClientConnection>.Values { connections.values }

    func open(_ link: any ClientLink, peer: PeerIdentity) -> ConnectionID {
        lastConnection += 1
        let id = ConnectionID(value: lastConnection)
        let tag = ProgramTag(value: lastConnection)
        let limits = context.options.quotaLimits
        // guard: held-by-program
        let program = programs[peer.pid] ?? ClientProgram(tag, limits, within: allPrograms)
        programs[peer.pid] = program
        program.connectionCount += 1
        connections[id] = ClientConnection(id: id, peer: peer, link: link, program: program, limits)
        context.log.debug("connection opened", metadata: ["connection": "\(id.value)", "pid": "\(peer.pid)"])
        return id
    }

    /// Removes a closed connection and returns it.
    func remove(_ id: ConnectionID) -> ClientConnection? {
        guard let connection = connections.removeValue(forKey: id) else { return nil }
        connection.program.connectionCount -= 1
        if connection.program.connectionCount == 0 { programs[connection.peer.pid] = nil }
        audit.forget(connection)
        context.log.debug(
            "connection closed", metadata: ["connection": "\(id.value)", "fetches": "\(connection.fetches.count)"])
        return connection
    }

    /// Answers a call, unless its connection is closed.
    func complete<M: Method>(_ call: Call<M>, _ result: Result<M.Result, RPCError>) {
        connections[call.connection]?.complete(call, result)
    }

    /// Returns the client that gets the reply to a fetch; `nil` if its connection is closed.
    func owner(of fetch: RunningFetch) -> ClientConnection? { fetch.owner.flatMap { connections[$0.connection] } }

    /// `initialize`: returns the version of the broker.
    func initialize(_ params: Initialize, _ connection: ClientConnection) throws -> String {
        guard !connection.profile.isInitialized else {
            throw RPCError(.invalidRequest, "this connection is already initialized")
        }
        connection.profile.isInitialized = true
        connection.profile.name = params.clientName.shortened
        connection.profile.subscription = params.delivery.map { Subscription(delivery: $0) }
        return context.options.version
    }

    // MARK: Broadcasts

    /// Records a credential change in the audit log, and notifies the clients, so that they can update their views.
    func announce(_ change: CredentialChange, _ cause: Cause) {
        audit.record(change, cause)
        notify(change)
    }

    /// Notifies all clients that are initialized and not confined of a credential change, without an audit record.
    func notify(_ change: CredentialChange) {
        let params: JSON = [
            "change": .string(change.kind.rawValue), "source": .string(change.source.rawValue),
            "user": change.user?.json, "protectionSpace": change.space?.json,
        ]
        for connection in connections.values where connection.profile.isInitialized && !connection.isConfined {
            connection.notify(.credentialChanged, params)
        }
    }

    // MARK: Agents

    func register(_ params: AgentRegister, _ connection: ClientConnection) throws -> String {
        guard connection.profile.agent == nil else {
            throw RPCError(.invalidRequest, "this connection is already an agent")
        }
        guard connections.values.count(where: { $0.profile.agent != nil }) < Limits.agents else {
            throw RPCError(.busy, "too many agents (limit \(Limits.agents)); unregister one first")
        }
        lastAgent += 1
        connection.profile.agent = AgentRegistration(
            number: lastAgent, name: params.name.shortened, locale: params.locale?.shortened,
            priority: params.priority, methods: params.methods, maxPending: params.maxPending,
            asksConfirm: params.asksConfirm, asksPrompt: params.asksPrompt)
        context.log.notice("agent registered", metadata: ["agent": "a\(lastAgent)", "pid": "\(connection.peer.pid)"])
        return "a\(lastAgent)"
    }

    func agent(for challenge: Challenge, after passed: Set<ConnectionID>) -> ClientConnection? {
        agents(after: passed).first { $0.profile.agent?.covers(challenge.protectionSpace) ?? false }
    }

    /// Whether an agent is registered.
    var hasAgent: Bool { connections.values.contains { $0.profile.agent != nil } }

    /// Returns the next agent that can be asked for consent. A process is never asked for consent to its own fetches.
    func confirmer(for fetch: RunningFetch, after passed: Set<ConnectionID>) -> ClientConnection? {
        let asker = owner(of: fetch)?.peer.pid
        // guard: consent-not-its-own
        return agents(after: passed).first { $0.profile.agent?.asksConfirm == true && $0.peer.pid != asker }
    }

    /// Returns the next agent that can show the prompt of a program. A process is never asked about its own prompts.
    func prompter(for pid: Int32, after passed: Set<ConnectionID>) -> ClientConnection? {
        // guard: prompts-not-its-own
        agents(after: passed).first { $0.profile.agent?.asksPrompt == true && $0.peer.pid != pid }
    }

    /// Returns the agent to which the question is assigned, if any.
    func agent(of question: PendingQuestion) -> ClientConnection? {
        if case .agent(let id) = question.place { connections[id] } else { nil }
    }

    /// Returns the agents that can be asked, in the order in which they are asked.
    private func agents(after passed: Set<ConnectionID>) -> [ClientConnection] {
        connections.values.filter { $0.profile.agent != nil && !$0.hasInputEnded && !passed.contains($0.id) }
            .sorted { ($0.profile.agent?.order ?? (0, 0)) < ($1.profile.agent?.order ?? (0, 0)) }
    }
}

extension AgentRegistration {
    /// The sort key. The agent with the lowest key is asked first.
    fileprivate var order: (Int, Int) { (-priority, number) }
}
