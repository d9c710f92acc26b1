public import WatchwordProtocol

/// Release of stored secrets to programs that the configuration names. Clients get stored secrets in no other way.
extension FetchTable {
    /// Returns the session's credential for these spaces. A staged credential is returned if no accepted one matches,
    /// or if its path is narrower.
    public func sessionCredential(
        for params: CredentialGet, of client: ClientTag, now: Duration
    ) -> LoginCredential? {
        let credential = context.session.credential(
            for: params.pattern, user: params.account, owner: sharing == .client ? .client(client) : nil,
            path: params.path, now: now)
        // Without its key, which is not released, a bound token is of no use.
        return credential?.binding == nil ? credential : nil
    }

    /// Returns the attributes to search the keyring for.
    public func keyringQueries(for pattern: SpacePattern) -> [[ExactText: ExactText]] {
        KeyringAttributes.queries(for: Challenger(pattern))
    }

    /// Returns the best match among the items found; `nil` if no item matches, or several match equally well.
    public func keyringCredential(for params: CredentialGet, among items: [KeyringItem]) -> LoginCredential? {
        let matches = KeyringMatches(
            items, at: Challenger(params.pattern), path: params.path, user: params.account,
            time: context.session.wallTime, fitting: { $0.overlaps(params.pattern) })
        guard case .credential(let credential, _, _) = KeyringMatch(matches, exactly: { _ in false }) else {
            return nil
        }
        return credential
    }
}
