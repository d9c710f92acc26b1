internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// What is kept, managed by hand: `credential/*`. No method shows a secret.
extension Router {
    func listCredentials(
        _ params: CredentialListParams, _ call: ConnectionMachine.CallID, from connection: ClientConnection
    ) throws {
        try refuseWhenLocked()
        let id = connection.id
        // When an item expires stands in its secret.
        searchKeyring(params.pattern, withSecrets: true) { broker, result in
            broker.clients[id]?.complete(call, .success(broker.listing(params.pattern, of: id, result)))
        }
    }

    private func listing(
        _ pattern: SpacePattern?, of id: ConnectionID, _ items: Result<[StoredItem], KeyringFailure>
    ) -> JSON {
        let session = table.sessionCredentials(of: id.tag, now: clock.now).map { credential in
            CredentialDescription(
                id: .session(credential.number), kind: credential.isToken ? .token : .password,
                pattern: credential.space, user: credential.user,
                domain: credential.domain, path: credential.path, expiresAt: credential.expiresAt,
                persistence: .forSession, source: .session, isDefault: credential.isDefault,
                lastUsed: credential.lastUse)
        }
        let stored = ((try? items.get()) ?? []).map { item in
            CredentialDescription(
                id: .keyring(item.id), kind: .password, pattern: item.pattern, user: item.account.user,
                domain: item.account.domain, path: item.path, expiresAt: item.expiresAt, persistence: .permanent,
                source: .keyring, isDefault: item.isDefault,
                lastUsed: nil)
        }
        let decided = table.connectionDecisions(of: id.tag, now: clock.now)
        let all = (session + decided + stored).filter { description in pattern?.contains(description.pattern) ?? true }
        return ["credentials": .array(all.map(\.json)), "keyring": keyringStatus()]
    }

    func storeCredential(
        _ params: CredentialStoreParams, _ call: ConnectionMachine.CallID, from connection: ClientConnection
    ) throws -> JSON? {
        try refuseWhenLocked()
        guard params.credential.persistence == .permanent else {
            guard params.credential.secret.isLocked else {
                throw RPCError(
                    .internalError,
                    "The credential is not kept: the kernel does not lock more memory for this user. Raise the limit (ulimit -l), or clear the session."
                )
            }
            let (number, orders) = table.give(
                params.credential, for: params.pattern, of: connection.id.tag, now: clock.now)
            perform(orders, connection.cause)
            return ["id": .string(CredentialID.session(number).text)]
        }
        let id = connection.id
        save(params.credential, for: params.pattern, connection.cause) { broker, result in
            if case .success = result {
                broker.table.noteStored(params.credential, for: params.pattern, of: id.tag)
            }
            let reply = result.map { id -> JSON in ["id": .string(CredentialID.keyring(id).text)] }
            broker.clients[id]?.complete(call, reply.mapError { RPCError(.keyringUnavailable, $0.text) })
        }
        return nil
    }

    func forgetCredential(
        _ params: CredentialForgetParams, _ call: ConnectionMachine.CallID, from connection: ClientConnection
    ) throws -> JSON? {
        try refuseWhenLocked()
        switch params {
        case .id(.session(let number)):
            let (count, orders) = table.forget(number: number, pattern: nil, of: connection.id.tag)
            perform(orders, connection.cause)
            guard count > 0 else { throw unknown(CredentialID.session(number)) }
            return ["removed": .integer(count)]
        case .id(.keyring(let name)):
            let id = connection.id
            table.noteForgotten(nil)
            removeItems([name], of: nil, counted: 0, connection.cause) { broker, result in
                broker.clients[id]?.complete(
                    call,
                    result.flatMap { count in
                        count > 0 ? .success(["removed": .integer(count)]) : .failure(broker.unknown(.keyring(name)))
                    })
            }
            return nil
        case .id(let id):
            let (count, orders) = table.forget(decision: id, of: connection.id.tag)
            perform(orders, connection.cause)
            guard count > 0 else { throw unknown(id) }
            return answer(call, ["removed": .integer(count)], of: connection, whenKeptBy: trust)
        case .pattern(let pattern):
            let (count, orders) = table.forget(number: nil, pattern: pattern, of: connection.id.tag)
            let cause = connection.cause
            perform(orders, cause)
            let id = connection.id
            searchKeyring(pattern) { broker, result in
                let items = ((try? result.get()) ?? []).filter { pattern.contains($0.pattern) }
                broker.removeItems(items.map(\.id), of: pattern, counted: count, cause) { broker, result in
                    broker.clients[id]?.complete(call, result.map { ["removed": .integer($0)] })
                }
            }
            return nil
        }
    }

    func setDefaultCredential(
        _ params: CredentialReference, _ call: ConnectionMachine.CallID, from connection: ClientConnection
    ) throws -> JSON? {
        try refuseWhenLocked()
        switch params.id {
        case .session(let number):
            guard let orders = table.setDefault(number: number, of: connection.id.tag, now: clock.now) else {
                throw unknown(params.id)
            }
            perform(orders, connection.cause)
            return [:]
        case .trust, .certificate: throw unknown(params.id)
        case .keyring(let name):
            let id = connection.id
            markDefault(name, connection.cause) { broker, result in broker.clients[id]?.complete(call, result) }
            return nil
        }
    }

    func refuseWhenLocked() throws {
        guard table.isLocked else { return }
        throw RPCError(.locked, "The broker is locked: it uses and keeps nothing. Unlock it with: watchword unlock")
    }

    private func unknown(_ id: CredentialID) -> RPCError {
        RPCError(.unknownCredential, "There is no credential \(id.text.shortened). credential/list shows all.")
    }

    // MARK: In the keyring

    private typealias Then<Value> = @Sendable (Router, Value) -> Void

    /// All items of the network schema, or those of one server, that say where they belong.
    private func searchKeyring(
        _ pattern: SpacePattern?, withSecrets: Bool = false,
        then: @escaping Then<Result<[StoredItem], KeyringFailure>>
    ) {
        guard let keyring, options.isKeyringEnabled, table.mayAskKeyring(now: clock.now) else {
            return then(self, .failure(.notConfigured))
        }
        let query = pattern.map(KeyringAttributes.searchQuery) ?? KeyringAttributes.everything
        let finish: @Sendable (Result<[KeyringItem], KeyringFailure>) -> Void = way.callback { broker, result in
            broker.noteKeyring(result)
            then(broker, result.map { $0.compactMap { StoredItem($0) } })
        }
        keyring.search([query], withSecrets: withSecrets, completion: finish)
    }

    /// One after the other.
    /// - Parameter pattern: what is forgotten with them; `nil` where that is not known.
    private func removeItems(
        _ names: [String], of pattern: SpacePattern?, counted: Int, _ cause: Cause,
        then: @escaping Then<Result<Int, RPCError>>
    ) {
        guard let name = names.first, let keyring, options.isKeyringEnabled else {
            return then(self, .success(counted))
        }
        let finish: @Sendable (Result<Bool, KeyringFailure>) -> Void = way.callback { broker, result in
            switch result {
            case .failure(let failure): then(broker, .failure(RPCError(.keyringUnavailable, failure.text)))
            case .success(let isRemoved):
                if isRemoved {
                    // A look-up may have found it until now.
                    broker.table.noteForgotten(pattern)
                    broker.clients.announce(CredentialChange(.forgotten, nil, user: nil, source: .keyring), cause)
                }
                broker.removeItems(
                    Array(names.dropFirst()), of: pattern, counted: counted + (isRemoved ? 1 : 0), cause, then: then)
            }
        }
        keyring.remove(name, ifSecretIs: nil, completion: finish)
    }

    /// Takes the mark from the others of the same space, and gives it to this one.
    private func markDefault(_ name: String, _ cause: Cause, then: @escaping Then<Result<JSON, RPCError>>) {
        searchKeyring(nil) { broker, result in
            guard let items = try? result.get(), let chosen = items.first(where: { $0.id == name }) else {
                return then(broker, .failure(broker.unknown(.keyring(name))))
            }
            let changes = items.filter { $0.isBeside(chosen) && $0.isDefault != ($0.id == name) }
            broker.apply(changes.map { ($0.id, $0.attributes(isDefault: $0.id == name)) }, chosen, cause, then: then)
        }
    }

    private func apply(
        _ changes: [(id: String, attributes: [ExactText: ExactText])], _ chosen: StoredItem, _ cause: Cause,
        then: @escaping Then<Result<JSON, RPCError>>
    ) {
        guard let change = changes.first, let keyring else { return then(self, .success([:])) }
        let isLast = changes.count == 1
        let rest = Array(changes.dropFirst())
        let finish: @Sendable (Result<Void, KeyringFailure>) -> Void = way.callback { broker, result in
            if case .failure(let failure) = result {
                return then(broker, .failure(RPCError(.keyringUnavailable, failure.text)))
            }
            if isLast {
                let user = chosen.account.user
                broker.clients.announce(
                    CredentialChange(.defaultChanged, chosen.pattern, user: user, source: .keyring), cause)
            }
            broker.apply(rest, chosen, cause, then: then)
        }
        keyring.setAttributes(change.attributes, of: change.id, completion: finish)
    }
}
