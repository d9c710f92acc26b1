internal import WatchwordCore
internal import WatchwordProtocol

/// Renews tokens before they expire, as long as they are used: a server that answers without a login, too, would not ask for a
/// token that was left out.
extension TokenDesk {
    func planRenewal(of token: LoginCredential, _ query: TokenQuery) {
        guard let query = query.withoutPerson else { return }
        let (digest, since) = (TokenDigest(token.secret, for: query.url.origin), context.now)
        renewals[query.purpose] = nil
        guard let wait = token.renewalWait(sinceEpoch: context.clock.sinceEpoch) else { return }
        renewals[query.purpose] = reference.after(wait) { $0.renew(digest, query, since: since) }
    }

    private func renew(_ token: TokenDigest, _ query: TokenQuery, since: Duration) {
        renewals[query.purpose] = nil
        // An unused token is left to expire.
        guard !context.isClosing, fetches.table.lastUse(of: token) ?? since > since,
            context.options.oauthRules.contains(query.rule)
        else { return }
        obtain(query) { [unowned self] outcome in
            if case .token(let next) = outcome { fetches.change { $0.replace(token, with: next) } }
        }
    }

    /// Whether logins are being stored, or replies awaited that have to be.
    var isBusy: Bool { grants.isBusy || searches.all.contains { $0.machine.isRenewing } }

    /// Whether time limits apply to a grant.
    var hasGrants: Bool { !grants.session.isEmpty }

    /// Removes the grants from memory whose time in the session is over. The use of their tokens counts.
    func expireGrants() {
        let table = fetches.table
        grants.session.expire(context.options.session, now: context.now) { table.lastUse(of: $0) }
    }
}
