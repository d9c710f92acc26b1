public import WatchwordProtocol

/// The one way in which a secret leaves: to a program that the configuration names.
extension FetchTable {
    /// What the session has for these spaces. What no server has accepted yet comes last.
    public func sessionCredential(
        for params: CredentialGetParams, of client: ClientTag, now: Duration
    ) -> LoginCredential? {
        context.session.credential(
            for: params.pattern, user: params.account, owner: sharing == .client ? .client(client) : nil,
            path: params.path, now: now)
    }

    /// What to look for in the keyring.
    public func keyringQueries(for pattern: SpacePattern) -> [[ExactText: ExactText]] {
        KeyringAttributes.queries(for: Challenger(pattern))
    }

    /// What fits best among the items found; `nil` when there is none, and rather than a guess between equals.
    public func keyringCredential(for params: CredentialGetParams, among items: [KeyringItem]) -> LoginCredential? {
        let matches = KeyringMatches(
            items, at: Challenger(params.pattern), path: params.path, user: params.account,
            time: context.session.wallTime, fitting: { $0.overlaps(params.pattern) })
        guard case .credential(let credential, _, _) = KeyringFinding(matches, exactly: { _ in false }) else {
            return nil
        }
        return credential
    }
}
