internal import WatchwordProtocol

/// Logins in whose course something was forgotten by hand: they are good for their own fetch at most.
extension FetchMachine {
    /// Whether what comes of the attempt may be remembered, and serve others.
    func isCurrent(_ attempt: Attempt, _ context: FetchContext) -> Bool {
        guard let mark = attempt.mark else { return false }
        return context.forgets.isCurrent(mark, for: attempt.space, user: attempt.credential.shownUser)
    }

    func isStored(_ source: CredentialSource) -> Bool { source == .session || source == .keyring }

    /// Whether it comes of a netrc file that the configuration does not name any more.
    func isOfFormerNetrc(_ source: CredentialSource, since mark: ForgetLog.Mark?, _ context: FetchContext) -> Bool {
        source == .netrc && mark.map { $0 < context.forgets.netrcMark } ?? false
    }

    /// Whether it was stored when it was chosen, and forgotten since then.
    func isForgotten(_ candidate: Candidate, in space: ProtectionSpace, _ context: FetchContext) -> Bool {
        if isOfFormerNetrc(candidate.source, since: candidate.mark, context) { return true }
        guard isStored(candidate.source), let mark = candidate.mark else { return false }
        return !context.forgets.isCurrent(mark, for: space, user: candidate.credential.shownUser)
    }

    /// Takes over the nonce that the server has announced, unless the session was forgotten meanwhile.
    func follow(
        _ exchange: DigestExchange, _ info: AuthenticationInfo, _ attempt: inout Attempt,
        _ context: inout FetchContext
    ) {
        if isCurrent(attempt, context) { attempt.follow(exchange, info, nonces: &context.session.nonces) }
    }
}
