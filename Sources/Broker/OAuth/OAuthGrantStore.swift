internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// The grants of the session, and those in the keyring.
final class OAuthGrantStore {
    struct Listing {
        let grants: [SessionGrants.Stored]
        /// The failure of a keyring that may have other grants.
        var failure: KeyringFailure?
    }

    private let keyring: KeyringDesk
    private let reference: DeskReference<TokenDesk>
    var session = SessionGrants()
    /// The number of pending writes and removals, for which shutdown waits.
    private var openChanges = 0

    init(_ keyring: KeyringDesk, _ reference: DeskReference<TokenDesk>) {
        (self.keyring, self.reference) = (keyring, reference)
    }

    var hasKeyring: Bool { keyring.port != nil }

    var isBusy: Bool { openChanges > 0 }

    /// Finds a grant.
    /// - Parameter mayAsk: whether the keyring may ask a person to unlock it: otherwise the login would be made again.
    func find(
        _ key: OAuthGrant.Key, of owner: ClientTag?, mayAsk: Bool, completion: @escaping @Sendable (OAuthGrant?) -> Void
    ) {
        let kept: OAuthGrant?
        switch session.use(key, of: owner, hasKeyring: hasKeyring, now: keyring.context.now) {
        case .session(let grant): return completion(grant)
        case .keyring(let grant): kept = grant
        }
        guard let port = keyring.port else { return completion(kept) }
        let desk = keyring.reference
        port.search([OAuthGrant.attributes(of: key)], withSecrets: true) { result in
            guard case .success(let items) = result else { return completion(kept) }
            // An item that is gone was deleted by the user; a locked one is still there.
            if let grant = OAuthGrant.first(of: key, in: items) { return completion(grant) }
            guard items.contains(where: \.isLocked) else { return completion(nil) }
            guard mayAsk, kept == nil else { return completion(kept) }
            desk.post {
                $0.unlock(isAsked: false) { unlocked in
                    guard case .success = unlocked else { return completion(nil) }
                    port.search([OAuthGrant.attributes(of: key)], withSecrets: true) { result in
                        completion(OAuthGrant.first(of: key, in: (try? result.get()) ?? []))
                    }
                }
            }
        }
    }

    /// Stores a grant; without a keyring, for the session.
    /// - Parameters:
    ///   - owner: the client for whose session it is; `nil` for all.
    ///   - isNew: whether a person has logged in.
    ///   - isKept: whether the session has it, too.
    func store(
        _ grant: OAuthGrant, of owner: ClientTag?, isNew: Bool, isKept: Bool, completion: @escaping @Sendable () -> Void
    ) {
        if isKept { session.record(grant, of: owner, isNew: isNew, now: keyring.context.now) }
        guard hasKeyring else { return completion() }
        openChanges += 1
        let stored: KeyringCompletion<String> = reference.direct { $0.grants.stored($1, grant, of: owner, isKept) }
        keyring.store(
            grant.secret, attributes: OAuthGrant.attributes(of: grant.key), label: grant.label, isAsked: false
        ) { result in
            stored(result)
            completion()
        }
    }

    private func stored(
        _ result: Result<String, KeyringFailure>, _ grant: OAuthGrant, of owner: ClientTag?, _ isKept: Bool
    ) {
        openChanges -= 1
        switch result {
        case .success: session.recordSaved(grant, of: owner)
        case .failure(let failure):
            let text = isKept ? "a login is stored for this session only" : "a renewed login cannot be stored, and ends"
            keyring.context.log.warning("\(text)", metadata: ["reason": "\(failure.text)"])
        }
    }

    /// Returns the grants that a client may manage: those in the keyring, its own, and the shared ones.
    /// - Parameters:
    ///   - isNeeded: whether to ask the keyring even after a recent failure.
    ///   - completion: called on the broker's executor.
    func all(of client: ClientTag, isNeeded: Bool, completion: @escaping @Sendable (Listing) -> Void) {
        keyring.find([OAuthGrant.query], withSecrets: true, isNeeded: isNeeded) { [session] result in
            switch result {
            case .success(let items): completion(Listing(grants: session.all(of: client, with: items)))
            case .failure(let failure):
                let known = session.all(of: client, with: [])
                completion(Listing(grants: known, failure: failure.mayHoldItems ? failure : nil))
            }
        }
    }

    // MARK: Forgetting

    /// Forgets grants. Until the keyring has removed them, they are not found.
    /// - Parameters:
    ///   - client: the client whose session has them, besides the keyring.
    ///   - isAsked: whether the user has asked for it, so that the keyring may show a window.
    ///   - completion: called on the broker's executor.
    func forget(
        _ keys: Set<OAuthGrant.Key>, of client: ClientTag?, isAsked: Bool,
        completion: @escaping KeyringCompletion<Void>
    ) {
        session.forget(keys, of: client)
        guard let port = keyring.port, !keys.isEmpty else { return completion(.success(())) }
        openChanges += 1
        session.beginRemoval(of: keys)
        let finish: KeyringCompletion<Void> = reference.direct { desk, result in
            desk.grants.openChanges -= 1
            desk.grants.session.endRemoval(of: keys)
            completion(result)
        }
        port.search(
            keys.map(OAuthGrant.attributes), withSecrets: true,
            completion: reference.callback { desk, result in
                switch result {
                case .success(let items): desk.grants.remove(items[...], from: port, isAsked: isAsked, finish)
                case .failure(let failure): finish(failure.mayHoldItems ? .failure(failure) : .success(()))
                }
            })
    }

    private func remove(
        _ items: ArraySlice<KeyringItem>, from port: any KeyringPort, isAsked: Bool,
        _ finish: @escaping KeyringCompletion<Void>
    ) {
        guard let item = items.first else { return finish(.success(())) }
        port.remove(
            item.id, ifSecretIs: isAsked ? nil : item.secret,
            completion: reference.callback { desk, result in
                if case .failure(let failure) = result { return finish(.failure(failure)) }
                desk.grants.remove(items.dropFirst(), from: port, isAsked: isAsked, finish)
            })
    }
}

extension OAuthGrant {
    fileprivate static func first(of key: Key, in items: [KeyringItem]) -> OAuthGrant? {
        items.lazy.compactMap { OAuthGrant($0) }.first { $0.key == key }
    }
}
