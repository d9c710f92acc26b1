internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// The keyring, as people and programs manage it by hand. Every `completion` is called on the broker's executor.
extension KeyringDesk {
    /// The result of `keyring/status`, and a member of `server/status`.
    var status: JSON {
        switch fetches.table.keyring.state {
        case .disabled:
            ["state": "unavailable", "kind": "disabled", "reason": .string(KeyringFailure.notConfigured.text)]
        case .unknown: ["state": "unknown"]
        case .usable: ["state": "usable"]
        case .unusable(let failure, _):
            [
                "state": .string(failure.kind == .locked ? "locked" : "unavailable"),
                "kind": .string(failure.kind.rawValue), "reason": .string(failure.text),
            ]
        }
    }

    /// `keyring/status`: asks the keyring how it is, and tells what it said.
    func check(_ call: CallID, from connection: ClientConnection) {
        guard let port else { return connection.complete(call, .success(status)) }
        let id = connection.id
        port.check(
            completion: way.callback { desk, result in
                desk.note(result)
                desk.clients.complete(call, of: id, .success(desk.status))
            })
    }

    /// `keyring/unlock`. The keyring may show a window of its own: there is time for a person.
    func unlock(_ call: CallID, from connection: ClientConnection) throws {
        guard let port else { throw RPCError(.keyringUnavailable, KeyringFailure.notConfigured.text) }
        let id = connection.id
        port.unlock(
            limit: context.options.challengeDeadline,
            completion: way.callback { desk, result in
                desk.note(result)
                desk.clients.complete(
                    call, of: id,
                    result.map { desk.status }.mapError { RPCError(.keyringUnavailable, $0.text) })
            })
    }

    /// What a call has shown of the keyring.
    func note<Value>(_ result: Result<Value, KeyringFailure>) {
        let failure: KeyringFailure? = if case .failure(let failure) = result { failure } else { nil }
        fetches.change { $0.noteKeyring(failure, now: context.now) }
    }

    // MARK: Items

    /// Whether there is one, that was not found silent just now.
    var mayBeAsked: Bool { port != nil && fetches.table.mayAskKeyring(now: context.now) }

    /// All items with these attributes.
    func find(
        _ queries: [[ExactText: ExactText]], withSecrets: Bool,
        completion: @escaping KeyringCompletion<[KeyringItem]>
    ) {
        guard mayBeAsked, let port else { return completion(.failure(.notConfigured)) }
        port.search(
            queries, withSecrets: withSecrets,
            completion: way.callback { desk, result in
                desk.note(result)
                completion(result)
            })
    }

    /// All items of the network schema, or those of one server, that say where they belong.
    func search(
        _ pattern: SpacePattern?, withSecrets: Bool = false,
        completion: @escaping KeyringCompletion<[StoredItem]>
    ) {
        let query = pattern.map(KeyringAttributes.searchQuery) ?? KeyringAttributes.everything
        find([query], withSecrets: withSecrets) { completion($0.map { $0.compactMap { StoredItem($0) } }) }
    }

    /// Removes items, one after the other, and says how many there were.
    /// - Parameters:
    ///   - pattern: what is forgotten with them; `nil` where that is not known.
    ///   - count: of what was removed before.
    func remove(
        _ names: [String], of pattern: SpacePattern?, after count: Int = 0, _ cause: Cause,
        completion: @escaping @Sendable (Result<Int, RPCError>) -> Void
    ) {
        guard let name = names.first, let port else { return completion(.success(count)) }
        let finish: KeyringCompletion<Bool> = way.callback { desk, result in
            switch result {
            case .failure(let failure): completion(.failure(RPCError(.keyringUnavailable, failure.text)))
            case .success(let isRemoved):
                if isRemoved {
                    // A look-up may have found it until now.
                    desk.fetches.change { $0.noteForgotten(pattern) }
                    desk.clients.announce(CredentialChange(.forgotten, nil, user: nil, source: .keyring), cause)
                }
                let rest = Array(names.dropFirst())
                desk.remove(rest, of: pattern, after: count + (isRemoved ? 1 : 0), cause, completion: completion)
            }
        }
        port.remove(name, ifSecretIs: nil, completion: finish)
    }

    /// Takes the mark from the others of the same space, and gives it to this one.
    func markDefault(_ name: String, _ cause: Cause, completion: @escaping @Sendable (Result<JSON, RPCError>) -> Void) {
        let mark: KeyringCompletion<[StoredItem]> = way.direct { desk, result in
            guard let items = try? result.get(), let chosen = items.first(where: { $0.id == name }) else {
                return completion(.failure(.unknownCredential(.keyring(name))))
            }
            let changes = items.filter { $0.isBeside(chosen) && $0.isDefault != ($0.id == name) }
            desk.apply(
                changes.map { ($0.id, $0.attributes(isDefault: $0.id == name)) }, chosen, cause, completion: completion)
        }
        search(nil, completion: mark)
    }

    private func apply(
        _ changes: [(id: String, attributes: [ExactText: ExactText])], _ chosen: StoredItem, _ cause: Cause,
        completion: @escaping @Sendable (Result<JSON, RPCError>) -> Void
    ) {
        guard let change = changes.first, let port else { return completion(.success([:])) }
        let rest = Array(changes.dropFirst())
        let finish: KeyringCompletion<Void> = way.callback { desk, result in
            if case .failure(let failure) = result {
                return completion(.failure(RPCError(.keyringUnavailable, failure.text)))
            }
            if rest.isEmpty {
                let user = chosen.account.user
                desk.clients.announce(
                    CredentialChange(.defaultChanged, chosen.pattern, user: user, source: .keyring), cause)
            }
            desk.apply(rest, chosen, cause, completion: completion)
        }
        port.setAttributes(change.attributes, of: change.id, completion: finish)
    }
}

extension RPCError {
    static func unknownCredential(_ id: CredentialID) -> RPCError {
        RPCError(.unknownCredential, "There is no credential \(id.text.shortened). credential/list shows all.")
    }
}
