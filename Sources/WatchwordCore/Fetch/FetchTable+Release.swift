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
            path: params.canonicalPath, now: now)
        // Without its key, which is not released, a bound token is of no use.
        return credential?.binding == nil ? credential : nil
    }

    /// Returns the attributes to search the keyring for.
    public func keyringQueries(for pattern: SpacePattern) -> [[ExactText: ExactText]] {
        KeyringAttributes.queries(for: Challenger(pattern))
    }

    /// Returns the best match among the items found; `nil` if no item matches, or several match equally well.
    public func keyringCredential(for params: CredentialGet, among items: [KeyringItem]) -> LoginCredential? {
        let challenger = Challenger(params.pattern)
        let matches = KeyringMatches(
            items, at: challenger, path: params.canonicalPath, user: params.account, time: context.session.wallTime
        ) {
            $0.overlaps(params.pattern) && challenger.mayRelease(passwordFor: $0.authenticationMethod)
        }
        guard case .credential(let credential, _, _) = KeyringMatch(matches, exactly: { _ in false }) else {
            return nil
        }
        return credential
    }
}

extension CredentialGet {
    /// The path as a server resolves it.
    fileprivate var canonicalPath: ExactText {
        ExactText(URLComponentText.removingDotSegments(path.string))
    }
}

extension Challenger {
    /// Whether a program may get a password that was stored for this method; `nil` is any method. An attacker on the
    /// network could send a Basic challenge to the program and read the password (SEMANTICS rule 25).
    func mayRelease(passwordFor method: AuthenticationMethod?) -> Bool {
        if case .server(let origin) = self, origin.scheme == .https || origin.isLoopback { return true }
        return method == nil || method == .httpBasic  // guard: released-over-http
    }
}
