internal import WatchwordCore
internal import WatchwordProtocol

/// Lists and forgets grants on behalf of clients. Every `completion` is called on the broker's executor.
extension TokenDesk {
    /// Returns the grants as `credential/list` shows them; only those in the keyring, because the tokens of the session are
    /// listed themselves.
    func list(of client: ClientTag, completion: @escaping @Sendable ([CredentialDescription]) -> Void) {
        grants.all(of: client, isNeeded: false) { listing in
            completion(
                listing.grants.compactMap { stored in
                    guard let item = stored.item, let place = ResourcePath(stored.key.resource) else { return nil }
                    return CredentialDescription(
                        id: .keyring(item), kind: .token, pattern: place.pattern, path: place.ownPath,
                        persistence: .permanent, source: .keyring)
                })
        }
    }

    /// Forgets grants, and revokes them at their servers.
    /// - Parameters:
    ///   - matches: called with the place of a login and, if it is in the keyring, the name of its item.
    ///   - completion: called on the broker's executor with the number of the grants that were in the keyring, after it has
    ///     removed them.
    func forget(
        of client: ClientTag, where matches: @escaping @Sendable (ResourcePath, String?) -> Bool,
        completion: @escaping @Sendable (Result<Int, RPCError>) -> Void
    ) {
        endSearches { matches($0, nil) }
        grants.all(
            of: client, isNeeded: true,
            completion: reference.direct { desk, listing in
                let keys = desk.forgetTokens(of: listing.grants, where: matches)
                if let failure = listing.failure {
                    desk.grants.session.forget(keys, of: client)
                    return completion(.failure(RPCError(.keyringUnavailable, failure.text)))
                }
                let count = listing.grants.count { keys.contains($0.key) && $0.item != nil }
                desk.grants.forget(keys, of: client, isAsked: true) { result in
                    completion(result.map { count }.mapError { RPCError(.keyringUnavailable, $0.text) })
                }
            })
    }

    /// Forgets the tokens of grants, and revokes the grants. Returns the keys of those that are meant.
    private func forgetTokens(
        of stored: [SessionGrants.Stored], where matches: (ResourcePath, String?) -> Bool
    ) -> Set<OAuthGrant.Key> {
        let meant = stored.filter { stored in
            ResourcePath(stored.key.resource).map { matches($0, stored.item) } ?? false
        }
        for stored in meant {
            // A renewal that is under way would store the grant again.
            endSearches { $0.resource == stored.key.resource }
            guard let grant = stored.grant else { continue }
            forgetToken(of: grant)
            revoke(grant)
        }
        return Set(meant.map(\.key))
    }

    /// Forgets what belongs to the session: all of it, or that of one origin.
    func endSession(_ origin: Origin? = nil) {
        grants.session.endSession(origin)
        endSearches(storesRenewals: true) { origin == nil || $0.origin == origin }
    }

    /// Forgets what only this client could use. Called after it has disconnected.
    func endSession(of client: ClientTag) {
        grants.session.endSession(of: client)
        for search in searches.all where search.purpose.owner == client { detach(search, .nothing, storing: .keyring) }
        renewals = renewals.filter { $0.key.owner != client }
        recent.forget(client)
    }

    /// Forgets the access token, which a server need not revoke together with the refresh token (RFC 7009 section 2.1).
    private func forgetToken(of grant: OAuthGrant) {
        guard let place = ResourcePath(grant.key.resource), let token = grant.access else { return }
        fetches.perform(fetches.change { $0.forget(TokenDigest(token, for: place.origin)) })
    }

    private func revoke(_ grant: OAuthGrant) {
        let rule = context.options.oauthRules.first { $0.resource == grant.key.resource }
        var revocation = OAuthGrantRevocation(grant, rule)
        if let request = revocation.start() { send(request, of: revocation) }
    }

    private func send(_ request: OAuthRequest, of revocation: OAuthGrantRevocation) {
        client.send(request, for: nil) { [reference] reply in
            reference.post { desk in
                var revocation = revocation
                if let next = revocation.next(after: reply) { desk.send(next, of: revocation) }
            }
        }
    }
}
