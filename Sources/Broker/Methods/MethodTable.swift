internal import CProtocolDocument
internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// The methods of the broker and their handlers. Dispatch, access control and the documentation of the protocol are
/// based on this table.
struct MethodTable: Sendable {
    struct Entry: Sendable {
        let method: any Method.Type
        /// Returns the result, or `nil` if the call is answered later.
        let run: @Sendable (JSON?, CallID, ClientConnection, Desks) throws -> JSON?
    }

    private(set) var entries: [String: Entry] = [:]

    subscript(name: String) -> Entry? { entries[name] }

    /// - Parameter handler: returns the result, or `nil` if the call is answered later.
    private mutating func add<M: Method>(
        _ method: M.Type, _ handler: @escaping @Sendable (M, Call<M>, ClientConnection, Desks) throws -> M.Result?
    ) {
        entries[M.name] = Entry(method: method) { json, id, connection, desks in
            try handler(M(json), Call(id: id, connection: connection.id), connection, desks).map { M.json($0) }
        }
    }

    private mutating func addLater<M: Method>(
        _ method: M.Type, _ handler: @escaping @Sendable (M, Call<M>, ClientConnection, Desks) throws -> Void
    ) {
        add(method) { params, call, connection, desks in
            try handler(params, call, connection, desks)
            return nil
        }
    }

    static let all = MethodTable()

    private init() {
        add(Initialize.self) { params, _, client, desks in try desks.clients.initialize(params, client) }
        add(Ping.self) { _, _, _, _ in () }
        add(ServerStatus.self) { _, _, _, desks in desks.status() }
        add(Discover.self) { _, _, _, _ in ProtocolDocument.load() }

        addLater(FetchRun.self) { method, call, client, desks in
            try desks.methods.run(method.params, call, from: client)
        }
        addLater(FetchStart.self) { method, call, client, desks in
            try desks.methods.start(method.params, call, from: client)
        }
        addLater(FetchRead.self) { params, call, client, desks in try desks.bodies.read(params, call, of: client) }
        addLater(FetchAttach.self) { params, call, client, desks in try desks.bodies.attach(params, call, from: client)
        }
        add(FetchCancel.self) { params, _, client, desks in desks.methods.cancel(params.fetchID, of: client) }
        add(FetchList.self) { _, _, client, desks in desks.methods.list(of: client) }

        add(AuthSubscribe.self) { params, _, client, desks in desks.questions.subscribe(params, client) }
        add(AuthUnsubscribe.self) { _, _, client, desks in desks.questions.unsubscribe(client) }
        add(AuthRespond.self) { params, _, client, desks in desks.questions.respond(params, of: client) }
        add(AuthListPending.self) { _, _, client, desks in desks.questions.listPending(client) }
        add(AgentRegister.self) { params, _, client, desks in try desks.clients.register(params, client) }
        add(AgentUnregister.self) { _, _, client, desks in try desks.questions.unregisterAgent(client) }
        add(EventsSubscribe.self) { params, _, client, desks in desks.audit.subscribe(params, client) }
        add(PromptList.self) { _, _, _, desks in desks.questions.prompts.list }
        add(PromptResume.self) { params, _, client, desks in
            let programs = desks.questions.prompts.resume(params.subject, client.cause)
            if !programs.isEmpty { desks.fetches.change { $0.endCooldowns() } }
            return programs.count
        }
        addLater(PromptAsk.self) { params, call, client, desks in
            try desks.programPrompts.ask(params.prompt, call, from: client)
        }

        addLater(CredentialList.self) { params, call, _, desks in try desks.credentials.list(params, call) }
        add(CredentialStore.self) { params, call, client, desks in try desks.credentials.store(params, call, client) }
        add(CredentialForget.self) { params, call, client, desks in try desks.credentials.forget(params, call, client) }
        add(CredentialSetDefault.self) { params, call, client, desks in
            try desks.credentials.setDefault(params, call, client)
        }
        addLater(CredentialGet.self) { params, call, client, desks in
            try desks.credentials.releaseCredential(params, call, client)
        }
        add(SessionClear.self) { params, _, client, desks in try desks.credentials.clearSession(params, client.cause) }
        add(BrokerLock.self) { params, _, client, desks in try desks.credentials.lock(params, client.cause) }
        add(BrokerUnlock.self) { params, _, client, desks in try desks.credentials.unlock(params, client.cause) }
        add(GrantList.self) { _, _, _, desks in desks.fetches.table.grants }
        add(GrantRevoke.self) { params, call, client, desks in
            desks.credentials.revokeGrants(params, call, client.cause)
        }
        add(FrontOpen.self) { params, _, client, desks in try desks.fronts.open(params, client) }
        add(FrontClose.self) { params, _, client, desks in try desks.fronts.close(params, client) }
        add(FrontList.self) { _, _, _, desks in desks.fronts.list }
        add(KeyringStatus.self) { _, call, _, desks in desks.keyring.check(call) }
        addLater(KeyringUnlock.self) { _, call, _, desks in
            try desks.credentials.refuseWhenLocked()
            desks.keyring.unlock(call)
        }
    }
}

/// An unanswered call of the method `M`.
struct Call<M: Method>: Sendable {
    let id: CallID
    let connection: ConnectionID
}

/// The OpenRPC document that `rpc.discover` returns.
enum ProtocolDocument {
    private static let limits = JSONLimits(depth: 64, values: 100_000)

    static func load() -> JSON {
        var length = 0
        let start = watchword_openrpc_document(&length)
        let document = try? JSON.parse(UnsafeRawBufferPointer(start: start, count: length), limits: limits)
        guard let document else { preconditionFailure("Protocol/openrpc.json is not JSON") }
        return document
    }
}
