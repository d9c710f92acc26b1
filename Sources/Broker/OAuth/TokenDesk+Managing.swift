internal import WatchwordCore
internal import WatchwordProtocol

/// Lists and forgets grants on behalf of clients. Every `completion` is called on the broker's executor.
extension TokenDesk {
    /// Returns the grants as `credential/list` shows them; only those in the keyring, because the tokens of the session are
    /// listed themselves.
    func list(completion: @escaping @Sendable ([CredentialDescription]) -> Void) {
        grants.all { result in
            let stored = (try? result.get()) ?? []
            completion(
                stored.compactMap { grant, item in
                    guard let item, let (pattern, path) = grant.place else { return nil }
                    return CredentialDescription(
                        id: .keyring(item), kind: .token, pattern: pattern, path: path, persistence: .permanent,
                        source: .keyring)
                })
        }
    }

    /// Forgets grants, and revokes them at their servers.
    /// - Parameter completion: called with the number of the grants in the keyring.
    func forget(
        where isMeant: @escaping @Sendable (SpacePattern, String?) -> Bool,
        completion: @escaping @Sendable (Int) -> Void
    ) {
        endSearches { isMeant(SpacePattern($0), nil) }
        grants.all(
            completion: reference.direct { desk, result in
                let meant = ((try? result.get()) ?? []).filter { grant, item in
                    grant.place.map { isMeant($0.pattern, item) } ?? false
                }
                for (grant, _) in meant {
                    desk.grants.forget(grant.key)
                    desk.revoke(grant)
                }
                completion(meant.count { $0.item != nil })
            })
    }

    /// Forgets what belongs to the session: all of it, or that of one origin.
    func endSession(_ origin: Origin? = nil) {
        grants.endSession(origin)
        endSearches { origin == nil || $0 == origin }  // guard: oauth-search-ends-with-the-session
    }

    private func revoke(_ grant: TokenGrant) {
        let rule = context.options.oauthRules.first { $0.resource == grant.key.resource }
        var revocation = GrantRevocation(grant, rule)
        if let request = revocation.start() { send(request, of: revocation) }
    }

    private func send(_ request: OAuthRequest, of revocation: GrantRevocation) {
        client.send(request, for: nil) { [reference] reply in
            reference.post { desk in
                var revocation = revocation
                if let next = revocation.next(after: reply) { desk.send(next, of: revocation) }
            }
        }
    }
}

extension SpacePattern {
    /// The spaces of tokens of a server.
    fileprivate init(_ origin: Origin) {
        self.init(
            scheme: origin.scheme.rawValue, host: origin.host, port: origin.port, authenticationMethod: .bearer)
    }
}
