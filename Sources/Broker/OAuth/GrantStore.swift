internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// The grants of the session, and those in the keyring.
final class GrantStore {
    /// A grant, and the name of its item in the keyring.
    typealias Stored = (grant: TokenGrant, item: String?)

    /// A grant in memory. Its times are limited as those of a credential in the session, also if the keyring has it.
    private struct Known {
        var grant: TokenGrant
        /// When a person logged in.
        let since: Duration
        var lastUse: Duration
    }

    private let keyring: KeyringDesk
    private let reference: DeskReference<TokenDesk>
    private var grants: [TokenGrant.Key: Known] = [:]
    /// The grants that are newer than those of the keyring.
    private var unsaved: Set<TokenGrant.Key> = []

    init(_ keyring: KeyringDesk, _ reference: DeskReference<TokenDesk>) {
        (self.keyring, self.reference) = (keyring, reference)
    }

    /// Finds a grant. The keyring is read each time, because another program may have renewed the grant: a refresh token that is
    /// used twice ends the login.
    func find(_ key: TokenGrant.Key, completion: @escaping @Sendable (TokenGrant?) -> Void) {
        grants[key]?.lastUse = keyring.context.now
        let known = grants[key]?.grant
        guard !unsaved.contains(key), let port = keyring.port else { return completion(known) }
        port.search([TokenGrant.attributes(of: key)], withSecrets: true) { result in
            // An item that is gone was deleted by the user; a locked one is still there.
            guard case .success(let items) = result, !items.contains(where: \.isLocked) else {
                return completion(known)
            }
            completion(items.lazy.compactMap(TokenGrant.init).first { $0.key == key })
        }
    }

    /// Stores a grant; without a keyring, for the session.
    /// - Parameter isNew: whether a person has logged in.
    func store(_ grant: TokenGrant, isNew: Bool, completion: @escaping @Sendable () -> Void) {
        let now = keyring.context.now
        let since = isNew ? now : grants[grant.key]?.since ?? now
        grants[grant.key] = Known(grant: grant, since: since, lastUse: now)
        unsaved.insert(grant.key)
        guard let port = keyring.port else { return completion() }
        let log = keyring.context.log
        let saved: @Sendable (TokenGrant.Key) -> Void = reference.callback { $0.grants.unsaved.remove($1) }
        port.store(grant.secret, attributes: TokenGrant.attributes(of: grant.key), label: grant.label) { result in
            switch result {
            case .success: saved(grant.key)
            case .failure(let failure):
                log.warning("a login is stored for this session only", metadata: ["reason": "\(failure.text)"])
            }
            completion()
        }
    }

    /// Returns all grants.
    func all(completion: @escaping KeyringCompletion<[Stored]>) {
        let known = grants.mapValues(\.grant)
        // The known ones have the access tokens; the keyring knows those of earlier sessions.
        let unite: @Sendable ([KeyringItem]) -> [Stored] = { items in
            let stored = items.compactMap { item in TokenGrant(item).map { (known[$0.key] ?? $0, Optional(item.id)) } }
            let rest = known.values.filter { grant in !stored.contains { $0.0.key == grant.key } }
            return stored + rest.map { ($0, nil) }
        }
        guard keyring.mayBeAsked else { return completion(.success(unite([]))) }
        keyring.find([TokenGrant.query], withSecrets: true) { completion(.success(unite((try? $0.get()) ?? []))) }
    }

    /// Forgets a grant.
    func forget(_ key: TokenGrant.Key) {
        grants[key] = nil
        unsaved.remove(key)
        guard let port = keyring.port else { return }
        port.search([TokenGrant.attributes(of: key)], withSecrets: false) { result in
            for item in (try? result.get()) ?? [] { port.remove(item.id, ifSecretIs: nil) { _ in } }
        }
    }

    var isEmpty: Bool { grants.isEmpty }

    /// Removes the grants from memory whose time is over.
    /// - Parameter lastUse: returns when an access token was last used.
    func expire(_ limits: SessionLimits, now: Duration, lastUse: (TokenMark) -> Duration?) {
        for (key, known) in grants where !limits.allow(since: known.since, lastUse: known.lastUse, now: now) {
            let mark = (try? FetchURL(key.resource)).flatMap { url in
                known.grant.access.map { TokenMark($0, for: url.origin) }
            }
            let used = max(known.lastUse, mark.flatMap(lastUse) ?? .zero)
            grants[key] =
                limits.allow(since: known.since, lastUse: used, now: now)
                ? Known(grant: known.grant, since: known.since, lastUse: used) : nil
        }
        unsaved.formIntersection(grants.keys)
    }

    /// Forgets what the keyring does not hold.
    func endSession(_ origin: Origin?) {
        grants = grants.filter { key, _ in origin.map { (try? FetchURL(key.resource))?.origin != $0 } ?? false }
        unsaved.formIntersection(grants.keys)
    }
}
