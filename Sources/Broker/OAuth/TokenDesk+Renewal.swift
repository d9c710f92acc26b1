internal import WatchwordCore
internal import WatchwordProtocol

/// Renews tokens before they expire, as long as they are used: a server that answers without a login, too, would not ask for a
/// token that was left out.
extension TokenDesk {
    /// A token that lives longer is renewed after a challenge.
    private static let longestWait = Duration.seconds(24 * 3600)

    func planRenewal(of token: LoginCredential, _ query: TokenQuery) {
        guard let query = query.withoutPerson else { return }
        let since = context.now
        renewals[query.purpose] = nil
        guard let left = token.expiresAt.map({ $0 - context.clock.sinceEpoch }), left < Self.longestWait else { return }
        renewals[query.purpose] = reference.after(left * 4 / 5) { $0.renew(token, query, since: since) }
    }

    private func renew(_ token: LoginCredential, _ query: TokenQuery, since: Duration) {
        renewals[query.purpose] = nil
        // An unused token is left to expire.
        guard !context.isClosing, fetches.table.wasUsed(token, since: since) else { return }
        obtain(query) { [unowned self] outcome in
            if case .token(let next) = outcome { fetches.change { $0.replace(token, with: next) } }
        }
    }
}
