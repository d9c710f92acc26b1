internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

extension Broker {
    func handle(_ event: ConnectionMachine.Event, from connection: ClientConnection) {
        switch event {
        case .call(let call, let method, let params):
            dispatch(call, method, params, from: connection)
        case .notification(let method, _):
            desks.context.log.debug("unknown notification", metadata: ["method": "\(method.shortened)"])
        case .cancel(let call):
            let fetches = desks.fetches
            let fetch = connection.fetches.lazy.compactMap { fetches[$0] }.first { $0.owner?.call == call }
            if let fetch { fetches.cancel(fetch) }
        case .reply(let request, let reply):
            desks.questions.receive(reply, to: request, from: connection)
        case .send(let bytes):
            connection.send(bytes)
        case .close:
            connection.close()
        }
    }

    private func dispatch(_ call: CallID, _ method: String, _ params: JSON?, from connection: ClientConnection) {
        do {
            guard !desks.context.isClosing else {
                throw RPCError(.shuttingDown, "The broker is closing. Connect again in a moment.")
            }
            guard let known = MethodName(rawValue: method) else {
                throw RPCError(
                    .methodNotFound, "there is no method \"\(method.shortened)\"; rpc.discover lists them all")
            }
            guard !connection.isConfined || known.isForEverybody else {
                let place =
                    connection.peer.entrance == .restricted
                    ? "on the restricted socket" : connection.peer.subject.confinement
                throw RPCError(
                    .denied,
                    "\(known.rawValue) is not offered \(place): only fetches and their own challenges are.")
            }
            if let result = try run(known, params, call, from: connection) {
                connection.complete(call, .success(result))
            }
        } catch let error as RPCError {
            desks.audit.recordDenial(error, connection.cause)
            connection.complete(call, .failure(error))
        } catch let error as InvalidParams {
            connection.complete(call, .failure(RPCError(.invalidParams, error.detail)))
        } catch let error as FetchFailure {
            connection.complete(call, .failure(RPCError(error.kind, error.text)))
        } catch {
            desks.context.log.error("unexpected error", metadata: ["method": "\(method.shortened)"])
            connection.complete(call, .failure(RPCError(.internalError, "an error that the broker does not know")))
        }
    }

    /// The result, or `nil` when it comes later.
    private func run(
        _ method: MethodName, _ params: JSON?, _ call: CallID, from connection: ClientConnection
    ) throws -> JSON? {
        if method.hasNoParams { _ = try Members(params) }
        switch method {
        case .initialize: return try initialize(connection, InitializeParams(params))
        case .ping: return [:]
        case .serverStatus: return status()
        case .discover: return desks.context.options.document()
        case .cancelRequest:
            throw RPCError(.methodNotFound, "$/cancelRequest is a notification: it has no id")

        case .fetchRun: try desks.methods.run(call, params, from: connection)
        case .fetchStart: try desks.methods.start(call, params, from: connection)
        case .fetchRead: try desks.bodies.read(FetchReadParams(params), call, of: connection)
        case .fetchAttach: try desks.bodies.attach(FetchAttachParams(params), call, from: connection)
        case .fetchCancel: return try desks.methods.cancel(FetchReference(params), of: connection)
        case .fetchList: return desks.methods.list(of: connection)

        case .authSubscribe: return desks.questions.subscribe(try AuthSubscribeParams(params), connection)
        case .authUnsubscribe: return desks.questions.unsubscribe(connection)
        case .authRespond: return desks.questions.respond(try AuthRespondParams(params), of: connection)
        case .authListPending: return desks.questions.listPending(connection)
        case .agentRegister: return try desks.clients.register(AgentRegisterParams(params), connection)
        case .agentUnregister: return try desks.questions.unregisterAgent(connection)
        case .eventsSubscribe: return desks.audit.subscribe(try EventsSubscribeParams(params), connection)
        case .promptList: return desks.questions.prompts.list
        case .promptResume:
            let programs = desks.questions.prompts.resume(try PromptResumeParams(params).subject, connection.cause)
            if !programs.isEmpty { desks.fetches.change { $0.forgetSilences() } }
            return ["resumed": .integer(programs.count)]

        case .credentialList: try desks.credentials.list(CredentialListParams(params), call, from: connection)
        case .credentialStore:
            return try desks.credentials.store(CredentialStoreParams(params), call, from: connection)
        case .credentialForget:
            return try desks.credentials.forget(CredentialForgetParams(params), call, from: connection)
        case .credentialSetDefault:
            return try desks.credentials.setDefault(CredentialReference(params), call, from: connection)
        case .credentialGet: try desks.credentials.handOut(CredentialGetParams(params), call, to: connection)
        case .sessionClear: return try desks.credentials.clearSession(SessionClearParams(params), connection.cause)
        case .brokerLock: return try desks.credentials.lock(LockParams(params), connection.cause)
        case .brokerUnlock: return try desks.credentials.unlock(LockParams(params), connection.cause)
        case .grantList: return ["grants": .array(desks.fetches.table.grants.map(\.json))]
        case .grantRevoke:
            return try desks.credentials.revokeGrants(GrantRevokeParams(params), call, from: connection)
        case .keyringStatus: desks.keyring.check(call, from: connection)
        case .keyringUnlock:
            _ = try Members(params, only: [])
            try desks.credentials.refuseWhenLocked()
            try desks.keyring.unlock(call, from: connection)
        }
        return nil
    }

    private func initialize(_ connection: ClientConnection, _ params: InitializeParams) throws -> JSON {
        guard !connection.profile.isInitialized else {
            throw RPCError(.invalidRequest, "this connection was initialized before")
        }
        connection.profile.isInitialized = true
        connection.profile.name = params.clientName.shortened
        connection.profile.subscription = params.delivery.map { Subscription(delivery: $0) }
        return InitializeResult.json(version: desks.context.options.version)
    }
}

extension MethodName {
    fileprivate var hasNoParams: Bool {
        switch self {
        case .ping, .serverStatus, .discover, .fetchList, .authUnsubscribe, .authListPending, .agentUnregister,
            .grantList, .promptList, .keyringStatus:
            true
        default: false
        }
    }

    /// Whether it is offered on the restricted socket, and in sandboxes, as well: what concerns a client's own fetches, and nothing else.
    fileprivate var isForEverybody: Bool {
        switch self {
        case .initialize, .ping, .discover, .fetchRun, .fetchStart, .fetchRead, .fetchAttach, .fetchCancel, .fetchList,
            .authSubscribe, .authUnsubscribe, .authRespond, .authListPending, .cancelRequest:
            true
        case .serverStatus, .agentRegister, .agentUnregister, .credentialList, .credentialStore, .credentialForget,
            .credentialSetDefault, .credentialGet, .sessionClear, .keyringStatus, .keyringUnlock, .brokerLock,
            .brokerUnlock, .eventsSubscribe, .grantList, .grantRevoke, .promptList, .promptResume:
            false
        }
    }
}

extension Subject {
    /// For the sentence that something is not offered.
    fileprivate var confinement: String {
        kind == .unknown ? "to programs of which the kernel does not tell what they are" : "to programs in a sandbox"
    }
}
