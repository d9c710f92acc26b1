internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// The grants of the session, and those in the keyring.
final class OAuthGrantStore {
    /// A grant in memory, in the keyring, or in both.
    struct Stored {
        let key: OAuthGrant.Key
        /// `nil` while it is locked.
        let grant: OAuthGrant?
        /// The name of its item; `nil` if only the session has it.
        let item: String?
    }

    struct Listing {
        let grants: [Stored]
        /// The failure of a keyring that may have other grants.
        var failure: KeyringFailure?
    }

    /// The place of a grant in memory.
    private struct Place: Hashable {
        let key: OAuthGrant.Key
        /// The client for which it is; `nil` for all.
        let owner: ClientTag?

        func isOf(_ client: ClientTag?) -> Bool { owner == nil || owner == client }
    }

    /// A grant in memory. Its times are limited as those of a credential in the session, also if the keyring has it.
    private struct Known {
        var grant: OAuthGrant
        /// When a person logged in.
        let since: Duration
        var lastUse: Duration
        /// Whether the keyring has this grant, or a newer one.
        var isSaved = false
    }

    private let keyring: KeyringDesk
    private let reference: DeskReference<TokenDesk>
    private var grants: [Place: Known] = [:]
    /// The grants that are being removed from the keyring, and how many calls remove each.
    private var removals: [OAuthGrant.Key: Int] = [:]
    /// The number of pending writes and removals, for which shutdown waits.
    private var openChanges = 0

    init(_ keyring: KeyringDesk, _ reference: DeskReference<TokenDesk>) {
        (self.keyring, self.reference) = (keyring, reference)
    }

    var isEmpty: Bool { grants.isEmpty }

    var hasKeyring: Bool { keyring.port != nil }

    var isBusy: Bool { openChanges > 0 }

    /// Finds a grant. The keyring is read each time, because another program may have renewed the grant: a refresh token that is
    /// used twice ends the login.
    /// - Parameter mayAsk: whether the keyring may ask a person to unlock it: otherwise the login would be made again.
    func find(
        _ key: OAuthGrant.Key, of owner: ClientTag?, mayAsk: Bool, completion: @escaping @Sendable (OAuthGrant?) -> Void
    ) {
        let place = Place(key: key, owner: owner)
        grants[place]?.lastUse = keyring.context.now
        let known = grants[place]
        if removals[key] != nil, known?.isSaved != false { return completion(nil) }
        guard known?.isSaved != false, let port = keyring.port else { return completion(known?.grant) }
        let (kept, desk) = (known?.grant, keyring.reference)
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
        let (place, now) = (Place(key: grant.key, owner: owner), keyring.context.now)
        let since = isNew ? now : grants[place]?.since ?? now
        if isKept { grants[place] = Known(grant: grant, since: since, lastUse: now) }
        guard hasKeyring else { return completion() }
        openChanges += 1
        let stored: KeyringCompletion<String> = reference.direct { $0.grants.stored($1, grant, place, isKept) }
        keyring.store(
            grant.secret, attributes: OAuthGrant.attributes(of: grant.key), label: grant.label, isAsked: false
        ) { result in
            stored(result)
            completion()
        }
    }

    private func stored(
        _ result: Result<String, KeyringFailure>, _ grant: OAuthGrant, _ place: Place, _ isKept: Bool
    ) {
        openChanges -= 1
        switch result {
        case .success where grants[place]?.grant == grant: grants[place]?.isSaved = true
        case .success: break
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
        let known = grants.filter { $0.key.isOf(client) }.map { ($0.key.key, $0.value.grant) }
        // The known ones have the access tokens; the keyring knows those of earlier sessions.
        let unite: @Sendable ([KeyringItem]) -> [Stored] = { items in
            let stored = items.compactMap { item in
                OAuthGrant.Key(item).map { key in
                    Stored(key: key, grant: known.first { $0.0 == key }?.1 ?? OAuthGrant(item), item: item.id)
                }
            }
            let rest = known.filter { key, _ in !stored.contains { $0.key == key } }
            return stored + rest.map { Stored(key: $0, grant: $1, item: nil) }
        }
        keyring.find([OAuthGrant.query], withSecrets: true, isNeeded: isNeeded) { result in
            switch result {
            case .success(let items): completion(Listing(grants: unite(items)))
            case .failure(let failure):
                completion(Listing(grants: unite([]), failure: failure.mayHoldItems ? failure : nil))
            }
        }
    }

    /// Removes the grants from memory whose time is over.
    /// - Parameter lastUse: returns when an access token was last used.
    func expire(_ limits: SessionLimits, now: Duration, lastUse: (TokenDigest) -> Duration?) {
        for (place, known) in grants where !limits.allow(since: known.since, lastUse: known.lastUse, now: now) {
            let mark = (try? FetchURL(place.key.resource)).flatMap { url in
                known.grant.access.map { TokenDigest($0, for: url.origin) }
            }
            let used = max(known.lastUse, mark.flatMap(lastUse) ?? .zero)
            guard limits.allow(since: known.since, lastUse: used, now: now) else {
                grants[place] = nil
                continue
            }
            grants[place]?.lastUse = used
        }
    }

    /// Forgets what the keyring does not hold.
    func endSession(_ origin: Origin?) {
        grants = grants.filter { place, _ in origin.map { (try? FetchURL(place.key.resource))?.origin != $0 } ?? false }
    }

    /// Forgets what only this client could use.
    func endSession(of client: ClientTag) { grants = grants.filter { $0.key.owner != client } }

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
        forgetInMemory(keys, of: client)
        guard let port = keyring.port, !keys.isEmpty else { return completion(.success(())) }
        openChanges += 1
        for key in keys { removals[key, default: 0] += 1 }
        let finish: KeyringCompletion<Void> = reference.direct { desk, result in
            desk.grants.openChanges -= 1
            for key in keys { desk.grants.removals[key] = desk.grants.removals[key].flatMap { $0 > 1 ? $0 - 1 : nil } }
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

    func forgetInMemory(_ keys: Set<OAuthGrant.Key>, of client: ClientTag?) {
        grants = grants.filter { !keys.contains($0.key.key) || !$0.key.isOf(client) }
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
