internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// The grants of the session; those that the keyring could store are read from it again in the next session.
final class GrantStore {
    private let keyring: KeyringDesk
    private let reference: DeskReference<TokenDesk>
    private var grants: [TokenGrant.Key: TokenGrant] = [:]

    init(_ keyring: KeyringDesk, _ reference: DeskReference<TokenDesk>) {
        (self.keyring, self.reference) = (keyring, reference)
    }

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

    /// Forgets a grant that the server has refused.
    func forget(_ key: TokenGrant.Key) {
        grants[key] = nil
        guard let port = keyring.port else { return }
        port.search([TokenGrant.attributes(of: key)], withSecrets: false) { result in
            for item in (try? result.get()) ?? [] { port.remove(item.id, ifSecretIs: nil) { _ in } }
        }
    }
}
