internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

typealias KeyringCompletion<Value> = @Sendable (Result<Value, KeyringFailure>) -> Void

/// The desk of the stored credentials: look-ups in the keyring and the netrc file for fetches, and what is written into the
/// keyring. It owns the calls that are under way; nobody but the fetch or client that asked waits for one.
final class KeyringDesk {
    let context: DeskContext
    let clients: ClientRegistry
    unowned let fetches: FetchRouter
    let way: WayBack<KeyringDesk>
    private let keyring: (any KeyringPort)?
    private let netrc: (any NetrcPort)?
    /// That are not answered. A fetch waits for its look-up until it ends.
    private var lookUps: [Int: FetchID] = [:]
    private var lastLookUp = 0
    /// That nobody waits for but the end of the service.
    private var openChanges = 0

    init(_ fetches: FetchRouter, _ way: WayBack<KeyringDesk>) {
        (keyring, netrc) = (fetches.ports.keyring, fetches.ports.netrc)
        (context, clients, self.fetches, self.way) = (fetches.context, fetches.clients, fetches, way)
    }

    /// `nil` where there is none, or none that the configuration lets be used.
    var port: (any KeyringPort)? { context.options.isKeyringEnabled ? keyring : nil }

    /// Whether something is being written.
    var isBusy: Bool { openChanges > 0 }

    // MARK: For fetches

    func lookUp(_ queries: [[ExactText: ExactText]], for fetch: RunningFetch) {
        let number = addLookUp(of: fetch)
        guard let keyring else { return lookUpEnded(.failure(.notConfigured), number) }
        let finish: KeyringCompletion<[KeyringItem]> = way.callback { $0.lookUpEnded($1, number) }
        keyring.search(queries, withSecrets: true) { result in
            guard case .success([]) = result else { return finish(result) }
            // A search that finds nothing does not say whether anything could be kept.
            keyring.check { state in finish(state.map { [] }) }
        }
    }

    private func addLookUp(of fetch: RunningFetch) -> Int {
        lastLookUp += 1
        lookUps[lastLookUp] = fetch.id
        return lastLookUp
    }

    private func lookUpEnded(_ result: Result<[KeyringItem], KeyringFailure>, _ number: Int) {
        guard let id = lookUps.removeValue(forKey: number) else { return }
        finishLookUp(result, id)
        // A keyring that does not answer costs its limit once, not once for each fetch that waits for it.
        guard case .failure(let failure) = result, failure.kind == .timedOut else { return }
        context.log.warning("the keyring does not answer", metadata: ["reason": "\(failure.text)"])
        let others = lookUps
        lookUps = [:]
        for (_, id) in others.sorted(by: { $0.key < $1.key }) { finishLookUp(result, id) }
    }

    private func finishLookUp(_ result: Result<[KeyringItem], KeyringFailure>, _ id: FetchID) {
        guard fetches[id] != nil else { return }
        fetches.report { $0.found(result, for: id, $1) }
    }

    func readNetrc(_ query: NetrcQuery, for fetch: RunningFetch) {
        let id = fetch.id
        guard let netrc, let file = context.options.netrcFile else { return netrcRead([], id) }
        netrc.logins(for: query, in: file, completion: way.callback { $0.netrcRead($1, id) })
    }

    private func netrcRead(_ logins: [Netrc.Login], _ id: FetchID) {
        guard fetches[id] != nil else { return }
        fetches.report { $0.foundInNetrc(logins, for: id, $1) }
    }

    // MARK: Changes by others

    /// From now on, also what other programs change in the keyring is told. It is no doing of the broker, and not recorded.
    func watch() { keyring?.observe(way.observer { $0.changedByOthers($1) }) }

    private func changedByOthers(_ change: KeyringChange) {
        guard port != nil, !context.isClosing else { return }
        switch change {
        case .stored(let item):
            guard let stored = StoredItem(item) else { return }
            clients.tell(CredentialChange(.stored, stored.pattern, user: stored.account.user, source: .keyring))
        case .removed: clients.tell(CredentialChange(.forgotten, nil, user: nil, source: .keyring))
        }
    }

    // MARK: Writing

    /// An accepted credential that is to be kept for good.
    func keep(_ credential: LoginCredential, for pattern: SpacePattern, _ cause: Cause) {
        save(credential, for: pattern, cause) { [log = context.log] result in
            if case .failure(let failure) = result {
                log.warning("a credential could not be kept in the keyring", metadata: ["reason": "\(failure.text)"])
            }
        }
    }

    /// A stored credential that the server has refused.
    func discard(_ item: String, ifStill credential: LoginCredential, _ cause: Cause) {
        guard let keyring else { return }
        openChanges += 1
        keyring.remove(
            item, ifSecretIs: KeyringSecret.text(of: credential),
            completion: way.callback { $0.discarded($1, user: credential.user, cause) })
    }

    private func discarded(_ result: Result<Bool, KeyringFailure>, user: ExactText, _ cause: Cause) {
        openChanges -= 1
        switch result {
        case .success(true):
            clients.announce(CredentialChange(.forgotten, nil, user: user, source: .keyring), cause)
        case .success(false): break
        case .failure(let failure):
            context.log.warning("a refused credential stays in the keyring", metadata: ["reason": "\(failure.text)"])
        }
    }

    /// Into the keyring: over what is there for the same user and space, and as the default where it is the first.
    /// - Parameter completion: called on the broker's executor, with the name of the item.
    func save(
        _ credential: LoginCredential, for pattern: SpacePattern, _ cause: Cause,
        completion: @escaping KeyringCompletion<String>
    ) {
        guard let keyring = port else { return completion(.failure(.notConfigured)) }
        openChanges += 1
        let finish: @Sendable (KeyringWrite.Outcome) -> Void = way.callback { desk, outcome in
            desk.saved(outcome, CredentialChange(.stored, pattern, user: credential.user, source: .keyring), cause)
            completion(outcome.item)
        }
        let mark = fetches.table.forgetMark
        let write: @Sendable (KeyringWrite) -> Void = way.callback { desk, write in
            // Somebody may have forgotten it meanwhile.
            guard desk.fetches.table.isCurrent(mark, for: pattern) else {
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

    private func saved(_ outcome: KeyringWrite.Outcome, _ change: CredentialChange, _ cause: Cause) {
        openChanges -= 1
        if case .failure(.forgotten) = outcome.item { return }
        note(outcome.item)
        if case .success = outcome.item, outcome.isNews { clients.announce(change, cause) }
    }
}

extension KeyringWrite {
    /// The item that has the credential, and whether that is new.
    fileprivate typealias Outcome = (item: Result<String, KeyringFailure>, isNews: Bool)
}

extension KeyringFailure {
    fileprivate static let forgotten = KeyringFailure(
        .cancelled, "the credential was not stored: it was forgotten, or the session cleared, in the meantime")
    static let notConfigured = KeyringFailure(
        .absent, "The broker runs without a keyring (keyring.enabled). It keeps credentials for the session only.")
}
