internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// Manages the keyring on behalf of clients. Every `completion` is called on the broker's executor.
extension KeyringDesk {
    /// The last known state of the keyring.
    var status: KeyringDescription {
        switch fetches.table.keyring.state {
        case .disabled: .unavailable(kind: "disabled", reason: KeyringFailure.notConfigured.text)
        case .unknown: .unknown
        case .usable: .usable
        case .unusable(let failure, _) where failure.kind == .locked: .locked(reason: failure.text)
        case .unusable(let failure, _): .unavailable(kind: failure.kind.rawValue, reason: failure.text)
        }
    }

    /// `keyring/status`: checks the keyring and answers `call` with its state.
    /// - Returns: the known state if the broker uses no keyring; otherwise `nil`, and the call is answered later.
    func check(_ call: Call<KeyringStatus>) -> KeyringDescription? {
        guard let port else { return status }
        port.check(
            completion: reference.callback { desk, result in
                desk.record(result)
                desk.clients.complete(call, .success(desk.status))
            })
        return nil
    }

    func unlock(_ call: Call<KeyringUnlock>) {
        unlock(
            isAsked: true,
            completion: reference.direct { desk, result in
                desk.clients.complete(
                    call, result.map { desk.status }.mapError { RPCError(.keyringUnavailable, $0.text) })
            })
    }

    /// Updates the known state of the keyring from the result of a call.
    func record<Value>(_ result: Result<Value, KeyringFailure>) {
        let failure: KeyringFailure? = if case .failure(let failure) = result { failure } else { nil }
        fetches.change { $0.recordKeyring(failure, now: context.now) }
    }

    // MARK: Items

    /// Whether there is a keyring, and no recent failure that pauses lookups.
    var mayBeAsked: Bool { port != nil && fetches.table.mayAskKeyring(now: context.now) }

    /// Finds all items that match one of `queries`.
    /// - Parameter isNeeded: whether to ask even after a recent failure, because the user wants something deleted.
    func find(
        _ queries: [[ExactText: ExactText]], withSecrets: Bool, isNeeded: Bool = false,
        completion: @escaping KeyringCompletion<[KeyringItem]>
    ) {
        guard isNeeded || mayBeAsked, let port else { return completion(.failure(.notConfigured)) }
        port.search(
            queries, withSecrets: withSecrets,
            completion: reference.callback { desk, result in
                desk.record(result)
                completion(result)
            })
    }

    /// Finds the items for the host of `pattern`, or all items of the schema for network passwords if `pattern` is
    /// `nil`. Items that are not HTTP logins are left out.
    func search(
        _ pattern: SpacePattern?, withSecrets: Bool = false, isNeeded: Bool = false,
        completion: @escaping KeyringCompletion<[StoredItem]>
    ) {
        let query = pattern.map(KeyringAttributes.searchQuery) ?? KeyringAttributes.everything
        find([query], withSecrets: withSecrets, isNeeded: isNeeded) {
            completion($0.map { $0.compactMap { StoredItem($0) } })
        }
    }

    /// Removes items, one after the other, and returns their number.
    /// - Parameters:
    ///   - pattern: the protection spaces of the items; `nil` if unknown.
    ///   - count: the number of credentials removed before this call, which is added to the result.
    func remove(
        _ names: [String], of pattern: SpacePattern?, after count: Int = 0, _ cause: Cause,
        completion: @escaping @Sendable (Result<Int, RPCError>) -> Void
    ) {
        guard let name = names.first, let port else { return completion(.success(count)) }
        let finish: KeyringCompletion<Bool> = reference.callback { desk, result in
            switch result {
            case .failure(let failure): completion(.failure(RPCError(.keyringUnavailable, failure.text)))
            case .success(let isRemoved):
                if isRemoved {
                    // Invalidates lookups that may have found the item before it was removed.
                    desk.fetches.change { $0.recordForgotten(pattern) }
                    desk.clients.announce(CredentialChange(.forgotten, nil, user: nil, source: .keyring), cause)
                }
                let rest = Array(names.dropFirst())
                desk.remove(rest, of: pattern, after: count + (isRemoved ? 1 : 0), cause, completion: completion)
            }
        }
        port.remove(name, ifSecretIs: nil, completion: finish)
    }

    /// Marks an item as the default, and removes the mark from the other items of its protection space.
    func markDefault(_ name: String, _ cause: Cause, completion: @escaping @Sendable (Result<Void, RPCError>) -> Void) {
        let mark: KeyringCompletion<[StoredItem]> = reference.direct { desk, result in
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
        completion: @escaping @Sendable (Result<Void, RPCError>) -> Void
    ) {
        guard let change = changes.first, let port else { return completion(.success(())) }
        let rest = Array(changes.dropFirst())
        let finish: KeyringCompletion<Void> = reference.callback { desk, result in
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

extension KeyringFailure {
    /// Whether the keyring may have items of the broker in spite of the failure.
    var mayHoldItems: Bool { kind != .absent && kind != .plainOnly }
}

extension RPCError {
    static func unknownCredential(_ id: CredentialID) -> RPCError {
        RPCError(.unknownCredential, "unknown credential \(id.text.shortened); credential/list shows all")
    }
}
