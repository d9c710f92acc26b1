internal import WatchwordProtocol

/// Tokens that the broker renews before they expire.
extension SessionCache {
    /// Returns when a token was last used; `nil` if it is not in the session.
    func lastUse(of token: TokenDigest) -> Duration? {
        accepted[.server(token.origin)].lazy.filter { token.matches($0.credential) }.map(\.lastUse).max()
    }

    /// Returns the numbers of the entries with this token.
    func numbers(of token: TokenDigest) -> Set<Int> {
        Set(accepted[.server(token.origin)].lazy.filter { token.matches($0.credential) }.map(\.number))
            .union(staged.all.filter { token.matches($0.credential) }.map(\.number))
    }

    /// Returns the numbers of the entries with tokens for this server.
    func numbersOfTokens(at origin: Origin) -> Set<Int> {
        Set(accepted[.server(origin)].lazy.filter { $0.credential.form == .token }.map(\.number))
    }

    /// Replaces a token by its successor, wherever it was accepted.
    mutating func replace(_ token: TokenDigest, with next: LoginCredential) {
        guard next.secret.isLocked else { return }
        changeAccepted { login in
            guard token.matches(login.credential) else { return }
            var next = next
            next.scope = next.scope ?? login.credential.scope
            login.change { $0.replace(token, with: next) }
        }
    }
}
