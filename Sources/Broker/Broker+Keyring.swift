internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// The keyring, on behalf of fetches. Nobody but the fetch that asked waits for it.
extension Router {
    func lookUp(_ queries: [[ExactText: ExactText]], for fetch: RunningFetch) {
        lastLookUp += 1
        let (id, number) = (fetch.id, lastLookUp)
        beginLookUp(number, of: fetch)
        lookUps[number] = id
        guard let keyring else { return lookUpEnded(.failure(.notConfigured), number) }
        let finish: @Sendable (Result<[KeyringItem], KeyringFailure>) -> Void = way.callback {
            $0.lookUpEnded($1, number)
        }
        keyring.search(queries, withSecrets: true) { result in
            guard case .success([]) = result else { return finish(result) }
            // A search that finds nothing does not say whether anything could be kept.
            keyring.check { state in finish(state.map { [] }) }
        }
    }

    private func lookUpEnded(_ result: Result<[KeyringItem], KeyringFailure>, _ number: Int) {
        guard let id = lookUps.removeValue(forKey: number) else { return }
        finishLookUp(result, id, number)
        // A keyring that does not answer costs its limit once, not once for each fetch that waits for it.
        guard case .failure(let failure) = result, failure.kind == .timedOut else { return }
        log.warning("the keyring does not answer", metadata: ["reason": "\(failure.text)"])
        let others = lookUps
        lookUps = [:]
        for (number, id) in others.sorted(by: { $0.key < $1.key }) { finishLookUp(result, id, number) }
    }

    private func finishLookUp(_ result: Result<[KeyringItem], KeyringFailure>, _ id: FetchID, _ number: Int) {
        guard let fetch = fetches[id], case .lookingUp(number, _) = fetch.state else { return }
        perform(table.found(result, for: id, environment))
    }

    /// An accepted credential that is to be kept for good.
    func keep(_ credential: LoginCredential, for pattern: SpacePattern, _ cause: Cause) {
        save(credential, for: pattern, cause) { [log] _, result in
            if case .failure(let failure) = result {
                log.warning("a credential could not be kept in the keyring", metadata: ["reason": "\(failure.text)"])
            }
        }
    }

    /// A stored credential that the server has refused.
    func discard(_ item: String, ifStill credential: LoginCredential, _ cause: Cause) {
        guard let keyring else { return }
        openKeyringChanges += 1
        keyring.remove(
            item, ifSecretIs: KeyringSecret.text(of: credential),
            completion: way.callback { $0.discarded($1, user: credential.user, cause) })
    }

    private func discarded(_ result: Result<Bool, KeyringFailure>, user: ExactText, _ cause: Cause) {
        openKeyringChanges -= 1
        switch result {
        case .success(true): clients.announce(CredentialChange(.forgotten, nil, user: user, source: .keyring), cause)
        case .success(false): break
        case .failure(let failure):
            log.warning("a refused credential stays in the keyring", metadata: ["reason": "\(failure.text)"])
        }
    }

    /// Into the keyring: over what is there for the same user and space, and as the default where it is the first.
    /// `completion` is called on the broker's executor.
    func save(
        _ credential: LoginCredential, for pattern: SpacePattern, _ cause: Cause,
        completion: @escaping @Sendable (Router, Result<String, KeyringFailure>) -> Void
    ) {
        guard let keyring, options.isKeyringEnabled else { return completion(self, .failure(.notConfigured)) }
        openKeyringChanges += 1
        let finish: @Sendable (KeyringWrite.Outcome) -> Void = way.callback {
            $0.saved($1, credential, pattern, cause, completion)
        }
        let mark = table.forgetMark
        let write: @Sendable (KeyringWrite) -> Void = way.callback { broker, write in
            // Somebody may have forgotten it meanwhile.
            guard broker.table.isCurrent(mark, for: pattern) else {
                return finish((.failure(.forgotten), isNews: false))
            }
            if let item = write.incomplete {
                return keyring.setAttributes(write.attributes, of: item) { finish(($0.map { item }, isNews: true)) }
            }
            keyring.store(write.secret, attributes: write.attributes, label: write.label) { finish(($0, isNews: true)) }
        }
        keyring.search([KeyringAttributes.searchQuery(for: pattern)], withSecrets: true) { result in
            switch result {
            case .failure(let failure): finish((.failure(failure), isNews: false))
            case .success(let items):
                let wanted = KeyringWrite(credential, for: pattern, over: items)
                if let unchanged = wanted.unchanged { return finish((.success(unchanged), isNews: false)) }
                write(wanted)
            }
        }
    }

    private func saved(
        _ outcome: KeyringWrite.Outcome, _ credential: LoginCredential, _ pattern: SpacePattern, _ cause: Cause,
        _ completion: (Router, Result<String, KeyringFailure>) -> Void
    ) {
        let (result, isNews) = outcome
        openKeyringChanges -= 1
        if case .failure(let failure) = result {
            if failure != .forgotten { table.noteKeyring(failure, now: clock.now) }
        } else {
            table.noteKeyring(nil, now: clock.now)
            if isNews {
                clients.announce(CredentialChange(.stored, pattern, user: credential.user, source: .keyring), cause)
            }
        }
        completion(self, result)
    }

    /// From now on, also what other programs change in the keyring is told. It is no doing of the broker, and not in its account.
    func watchKeyring() {
        keyring?.observe(way.observer { $0.changedByOthers($1) })
    }

    private func changedByOthers(_ change: KeyringChange) {
        guard options.isKeyringEnabled, !isClosing else { return }
        switch change {
        case .stored(let item):
            guard let stored = StoredItem(item) else { return }
            clients.tell(CredentialChange(.stored, stored.pattern, user: stored.account.user, source: .keyring))
        case .removed: clients.tell(CredentialChange(.forgotten, nil, user: nil, source: .keyring))
        }
    }

    // MARK: Status

    /// The result of `keyring/status`, and a member of `server/status`.
    func keyringStatus() -> JSON {
        switch table.keyring.state {
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

    /// Asks the keyring how it is, and tells what it said.
    func checkKeyring(_ call: ConnectionMachine.CallID, from connection: ClientConnection) {
        guard let keyring, options.isKeyringEnabled else {
            return connection.complete(call, .success(keyringStatus()))
        }
        let id = connection.id
        keyring.check(completion: way.callback { $0.checked($1, call, id) })
    }

    private func checked(
        _ result: Result<Void, KeyringFailure>, _ call: ConnectionMachine.CallID, _ id: ConnectionID
    ) {
        noteKeyring(result)
        clients[id]?.complete(call, .success(keyringStatus()))
    }

    /// The keyring may show a window of its own: there is time for a person.
    func unlockKeyring(_ call: ConnectionMachine.CallID, from connection: ClientConnection) throws {
        guard let keyring, options.isKeyringEnabled else {
            throw RPCError(.keyringUnavailable, KeyringFailure.notConfigured.text)
        }
        let id = connection.id
        keyring.unlock(limit: options.challengeDeadline, completion: way.callback { $0.unlocked($1, call, id) })
    }

    private func unlocked(
        _ result: Result<Void, KeyringFailure>, _ call: ConnectionMachine.CallID, _ id: ConnectionID
    ) {
        noteKeyring(result)
        switch result {
        case .success: clients[id]?.complete(call, .success(keyringStatus()))
        case .failure(let failure):
            clients[id]?.complete(call, .failure(RPCError(.keyringUnavailable, failure.text)))
        }
    }

    func noteKeyring<Value>(_ result: Result<Value, KeyringFailure>) {
        if case .failure(let failure) = result {
            table.noteKeyring(failure, now: clock.now)
        } else {
            table.noteKeyring(nil, now: clock.now)
        }
    }
}

extension KeyringWrite {
    /// The item that has the credential, and whether that is new.
    typealias Outcome = (item: Result<String, KeyringFailure>, isNews: Bool)
}

extension KeyringFailure {
    fileprivate static let forgotten = KeyringFailure(
        .cancelled, "the credential was not stored: it was forgotten, or the session cleared, in the meantime")
    static let notConfigured = KeyringFailure(
        .absent, "The broker runs without a keyring (keyring.enabled). It keeps credentials for the session only.")
}
