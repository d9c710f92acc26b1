internal import JSONText
internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

typealias KeyringCompletion<Value> = @Sendable (Result<Value, KeyringFailure>) -> Void

/// Looks up credentials for fetches in the keyring and the netrc file, gets them from commands, and writes to the
/// keyring. Owns the pending calls. Only the fetch or client for which a call is made waits for the call.
final class KeyringDesk {
    let context: DeskContext
    let clients: ClientRegistry
    unowned let fetches: FetchRouter
    let reference: DeskReference<KeyringDesk>
    private let keyring: (any KeyringPort)?
    private let netrc: (any NetrcPort)?
    private let commands: (any CommandPort)?
    /// The pending lookups, by number.
    private var lookUps: [Int: FetchID] = [:]
    private var lastLookUp = 0
    /// The number of pending writes and removals, for which shutdown waits.
    private var openChanges = 0
    /// Delays the windows of the keyring after a person has closed some.
    private var windows = PromptLimiter()
    /// What waits for the window that is open.
    private var unlocking: [KeyringCompletion<Void>] = []
    /// The number of pending writes that may open a window.
    private var openStores = 0

    init(_ fetches: FetchRouter, _ reference: DeskReference<KeyringDesk>) {
        (keyring, netrc, commands) = (fetches.ports.keyring, fetches.ports.netrc, fetches.ports.commands)
        (context, clients, self.fetches, self.reference) = (fetches.context, fetches.clients, fetches, reference)
    }

    /// The keyring; `nil` if there is none or the configuration disables it.
    var port: (any KeyringPort)? { context.options.isKeyringEnabled ? keyring : nil }

    /// Whether writes are pending.
    var isBusy: Bool { openChanges > 0 }

    // MARK: Lookups

    func lookUp(_ queries: [[ExactText: ExactText]], for fetch: RunningFetch) {
        let number = addLookUp(of: fetch)
        guard let keyring else { return lookUpEnded(.failure(.notConfigured), number) }
        let finish: KeyringCompletion<[KeyringItem]> = reference.callback { $0.lookUpEnded($1, number) }
        keyring.search(queries, withSecrets: true) { result in
            guard case .success([]) = result else { return finish(result) }
            // An empty result does not show whether the keyring can store an item.
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
        // After a timeout, all other pending lookups fail too, so that each fetch does not wait for its own timeout.
        guard case .failure(let failure) = result, failure.kind == .timedOut else { return }
        context.log.warning("the keyring does not answer", metadata: ["reason": "\(failure.text)"])
        let others = lookUps
        lookUps = [:]
        for (_, id) in others.sorted(by: { $0.key < $1.key }) { finishLookUp(result, id) }
    }

    private func finishLookUp(_ result: Result<[KeyringItem], KeyringFailure>, _ id: FetchID) {
        guard fetches[id] != nil else { return }
        fetches.report(.found(.items(result)), of: id)
    }

    /// Searches the netrc file, then runs the first command for this server.
    func readNetrc(_ query: NetrcQuery, for fetch: RunningFetch) {
        let id = fetch.id
        guard let netrc, let file = context.options.netrcFile else { return runCommand(query, id) }
        netrc.logins(
            for: query, in: file,
            completion: reference.callback { desk, logins in
                logins.isEmpty ? desk.runCommand(query, id) : desk.found(logins, from: .netrc, id)
            })
    }

    private func runCommand(_ query: NetrcQuery, _ id: FetchID) {
        guard fetches[id] != nil, let commands,
            let command = context.options.credentialCommands.first(where: query.matches)
        else { return found([], from: .command, id) }
        commands.password(
            from: command,
            completion: reference.callback { desk, password in
                let login = password.map { Netrc.Login(machine: "", user: command.user, password: $0) }
                desk.found(login.map { [$0] } ?? [], from: .command, id)
            })
    }

    private func found(_ logins: [Netrc.Login], from source: CredentialSource, _ id: FetchID) {
        guard fetches[id] != nil else { return }
        fetches.report(.found(.logins(logins, source)), of: id)
    }

    // MARK: External changes

    /// Starts to notify clients of keyring changes by other programs. Such changes are not recorded in the audit log.
    func watch() { keyring?.observe(reference.observer { $0.changedByOthers($1) }) }

    private func changedByOthers(_ change: KeyringChange) {
        guard port != nil, !context.isClosing else { return }
        switch change {
        case .stored(let item):
            guard let stored = StoredItem(item) else { return }
            clients.notify(CredentialChange(.stored, stored.pattern, user: stored.account.user, source: .keyring))
        case .removed: clients.notify(CredentialChange(.forgotten, nil, user: nil, source: .keyring))
        }
    }

    // MARK: Windows

    /// Unlocks the keyring, with one window for all that wait for it. The time limit is the one for challenges, because a person
    /// may be asked.
    /// - Parameters:
    ///   - isAsked: whether the user has asked for it. For a fetch, no window opens just after a person has closed one.
    ///   - completion: called on the broker's executor.
    func unlock(isAsked: Bool, completion: @escaping KeyringCompletion<Void>) {
        guard let port else { return completion(.failure(.notConfigured)) }
        guard !unlocking.isEmpty || isAsked || mayShowWindow else { return completion(.failure(.windowClosed)) }
        unlocking.append(completion)
        guard unlocking.count == 1 else { return }
        port.unlock(
            limit: context.options.challengeDeadline,
            completion: reference.callback { desk, result in
                desk.record(result)
                desk.recordWindow(result)
                let waiting = desk.unlocking
                desk.unlocking = []
                for completion in waiting { completion(result) }
            })
    }

    /// Stores an item, and unlocks the keyring for it.
    /// - Parameters:
    ///   - isAsked: see `unlock`.
    ///   - completion: called on the broker's executor.
    func store(
        _ secret: Secret, attributes: [ExactText: ExactText], label: String, isAsked: Bool,
        completion: @escaping KeyringCompletion<String>
    ) {
        guard let port else { return completion(.failure(.notConfigured)) }
        let write: KeyringCompletion<Void> = reference.direct { desk, result in
            if case .failure(let failure) = result { return completion(.failure(failure)) }
            desk.openStores += 1
            port.store(
                secret, attributes: attributes, label: label,
                completion: desk.reference.callback { desk, result in
                    desk.openStores -= 1
                    desk.recordWindow(result)
                    completion(result)
                })
        }
        if isAsked || mayShowWindow, unlocking.isEmpty, openStores == 0 { return write(.success(())) }
        // Another window may be open, or was just closed.
        port.check(
            completion: reference.callback { desk, result in
                guard case .failure(let failure) = result, failure.kind == .locked else { return write(result) }
                desk.unlock(isAsked: isAsked, completion: write)
            })
    }

    private var mayShowWindow: Bool { windows.wait(of: "", at: .keyring, now: context.now) == nil }

    private func recordWindow<Value>(_ result: Result<Value, KeyringFailure>) {
        switch result {
        case .success: windows.recordAnswer(to: "", at: .keyring)
        case .failure(let failure) where failure.kind == .dismissed || failure.kind == .timedOut:
            windows.recordRefusal(of: "", at: .keyring, now: context.now)
        case .failure: break
        }
    }

    // MARK: Writing

    /// Stores an accepted permanent credential. A failure is only logged.
    func storeAccepted(_ credential: LoginCredential, for pattern: SpacePattern, _ cause: Cause) {
        save(credential, for: pattern, isAsked: false, cause) { [log = context.log] result in
            if case .failure(let failure) = result {
                log.warning("cannot store a credential in the keyring", metadata: ["reason": "\(failure.text)"])
            }
        }
    }

    /// Removes a credential that the server has refused, unless the secret of the item has changed since.
    func discard(_ item: String, ifStill credential: LoginCredential, _ cause: Cause) {
        guard let keyring else { return }
        openChanges += 1
        keyring.remove(
            item, ifSecretIs: KeyringSecret.text(of: credential),
            completion: reference.callback { $0.discarded($1, user: credential.user, cause) })
    }

    private func discarded(_ result: Result<Bool, KeyringFailure>, user: ExactText, _ cause: Cause) {
        openChanges -= 1
        switch result {
        case .success(true):
            clients.announce(CredentialChange(.forgotten, nil, user: user, source: .keyring), cause)
        case .success(false): break
        case .failure(let failure):
            context.log.warning("a refused credential is still in the keyring", metadata: ["reason": "\(failure.text)"])
        }
    }

    /// Stores a credential in the keyring. An item of the same user and protection space is replaced. The first item of
    /// a protection space becomes the default.
    /// - Parameters:
    ///   - isAsked: see `store`.
    ///   - completion: called on the broker's executor with the name of the item.
    func save(
        _ credential: LoginCredential, for pattern: SpacePattern, isAsked: Bool, _ cause: Cause,
        completion: @escaping KeyringCompletion<String>
    ) {
        guard let keyring = port else { return completion(.failure(.notConfigured)) }
        openChanges += 1
        let finish: @Sendable (KeyringWrite.Outcome) -> Void = reference.callback { desk, outcome in
            desk.saved(outcome, CredentialChange(.stored, pattern, user: credential.user, source: .keyring), cause)
            completion(outcome.item)
        }
        let mark = fetches.table.forgetMark
        let write: @Sendable (KeyringWrite) -> Void = reference.callback { desk, write in
            // A client may have removed the credential meanwhile.
            guard desk.fetches.table.isCurrent(mark, for: pattern) else {  // guard: forget-keyring-write
                return finish((.failure(.forgotten), isNews: false))
            }
            if let item = write.incomplete {
                return keyring.setAttributes(write.attributes, of: item) { finish(($0.map { item }, isNews: true)) }
            }
            desk.store(write.secret, attributes: write.attributes, label: write.label, isAsked: isAsked) {
                finish(($0, isNews: true))
            }
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
        record(outcome.item)
        if case .success = outcome.item, outcome.isNews { clients.announce(change, cause) }
    }
}

extension KeyringWrite {
    /// The name of the item, and whether the keyring was changed.
    fileprivate typealias Outcome = (item: Result<String, KeyringFailure>, isNews: Bool)
}

extension KeyringFailure {
    fileprivate static let forgotten = KeyringFailure(
        .cancelled, "the credential was not stored: it was removed, or the session cleared, in the meantime")
    fileprivate static let windowClosed = KeyringFailure(
        .locked, "the keyring is locked, and its window was just closed; run \"watchword keyring unlock\"")
    static let notConfigured = KeyringFailure(
        .absent, "the broker runs without a keyring (keyring.enabled); credentials are stored for the session only")
}
