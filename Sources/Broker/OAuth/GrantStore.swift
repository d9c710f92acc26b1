internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// The grants of the session, and those in the keyring.
final class GrantStore {
    /// A grant, and the name of its item in the keyring.
    typealias Stored = (grant: TokenGrant, item: String?)

    private let keyring: KeyringDesk
    private var grants: [TokenGrant.Key: TokenGrant] = [:]

    init(_ keyring: KeyringDesk) { self.keyring = keyring }

    /// - Parameter isFresh: whether to read the keyring even if the grant is known, because another program may have renewed
    ///   it.
    func find(_ key: TokenGrant.Key, isFresh: Bool, completion: @escaping @Sendable (TokenGrant?) -> Void) {
        let known = grants[key]
        guard known == nil || isFresh, let port = keyring.port else { return completion(known) }
        port.search([TokenGrant.attributes(of: key)], withSecrets: true) { result in
            completion((try? result.get())?.lazy.compactMap(TokenGrant.init).first { $0.key == key } ?? known)
        }
    }

    /// Stores a grant. Without a keyring it is kept for the session.
    func store(_ grant: TokenGrant, completion: @escaping @Sendable () -> Void) {
        grants[grant.key] = grant
        guard let port = keyring.port else { return completion() }
        let log = keyring.context.log
        port.store(grant.secret, attributes: TokenGrant.attributes(of: grant.key), label: grant.label) { result in
            if case .failure(let failure) = result {
                log.warning("a login is kept for this session only", metadata: ["reason": "\(failure.text)"])
            }
            completion()
        }
    }

    /// Returns all grants.
    func all(completion: @escaping KeyringCompletion<[Stored]>) {
        let known = grants
        // The known ones have the access tokens; the keyring knows those of earlier sessions.
        let unite: @Sendable ([KeyringItem]) -> [Stored] = { items in
            let stored = items.compactMap { item in TokenGrant(item).map { (known[$0.key] ?? $0, Optional(item.id)) } }
            let rest = known.values.filter { grant in !stored.contains { $0.0.key == grant.key } }
            return stored + rest.map { ($0, nil) }
        }
        guard keyring.mayBeAsked else { return completion(.success(unite([]))) }
        keyring.find([TokenGrant.query], withSecrets: true) { completion($0.map(unite)) }
    }

    /// Forgets a grant.
    func forget(_ key: TokenGrant.Key) {
        grants[key] = nil
        guard let port = keyring.port else { return }
        port.search([TokenGrant.attributes(of: key)], withSecrets: false) { result in
            for item in (try? result.get()) ?? [] { port.remove(item.id, ifSecretIs: nil) { _ in } }
        }
    }

    /// Forgets what the keyring does not hold.
    func endSession(_ origin: Origin?) {
        grants = grants.filter { key, _ in origin.map { (try? FetchURL(key.resource))?.origin != $0 } ?? false }
    }
}
