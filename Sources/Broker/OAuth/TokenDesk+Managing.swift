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
    /// - Parameter isMeant: called with the place of a login and, if it is in the keyring, the name of its item.
    func forget(
        where isMeant: @escaping @Sendable (TokenPlace, String?) -> Bool,
        completion: @escaping @Sendable (Int) -> Void
    ) {
        endSearches { isMeant($0, nil) }
        grants.all(
            completion: reference.direct { desk, result in
                let meant = ((try? result.get()) ?? []).filter { grant, item in
                    TokenPlace(grant.key.resource).map { isMeant($0, item) } ?? false
                }
                for (grant, _) in meant {
                    // A renewal that is under way would store the grant again.
                    desk.endSearches { $0.resource == grant.key.resource }  // guard: oauth-renewal-of-a-forgotten-login
                    desk.grants.forget(grant.key)
                    desk.forgetToken(of: grant)
                    desk.revoke(grant)
                }
                completion(meant.count { $0.item != nil })
            })
    }

    /// Forgets what belongs to the session: all of it, or that of one origin.
    func endSession(_ origin: Origin? = nil) {
        grants.endSession(origin)
        endSearches { origin == nil || $0.origin == origin }  // guard: oauth-search-ends-with-the-session
    }

    /// Forgets the access token, which a server need not revoke together with the refresh token (RFC 7009 section 2.1).
    private func forgetToken(of grant: TokenGrant) {
        guard let place = TokenPlace(grant.key.resource), let token = grant.access else { return }
        fetches.perform(fetches.change { $0.forget(TokenMark(token, for: place.origin)) })
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

/// The place for which a table has tokens.
struct TokenPlace: Sendable {
    let resource: String
    let origin: Origin
    let path: ExactText

    init?(_ resource: String) {
        guard let url = try? FetchURL(resource) else { return nil }
        (self.resource, origin, path) = (resource, url.origin, url.path)
    }

    /// The spaces of the tokens.
    var pattern: SpacePattern {
        SpacePattern(
            scheme: origin.scheme.rawValue, host: origin.host, port: origin.port, authenticationMethod: .bearer)
    }
}
