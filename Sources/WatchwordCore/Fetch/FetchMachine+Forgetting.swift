internal import WatchwordProtocol

/// Logins in whose course something was forgotten by hand: they are good for their own fetch at most.
extension FetchMachine {
    /// Whether what comes of the attempt may be remembered, and serve others.
    func isCurrent(_ attempt: Attempt, _ memory: CredentialMemory) -> Bool {
        guard let mark = attempt.mark else { return false }
        return memory.forgets.isCurrent(mark, for: attempt.space, user: attempt.credential.shownUser)
    }

    func isStored(_ source: CredentialSource) -> Bool { source == .session || source == .keyring }

    /// Whether it comes of a netrc file that the configuration does not name any more.
    func isOfFormerNetrc(_ source: CredentialSource, since mark: ForgetLog.Mark?, _ memory: CredentialMemory) -> Bool {
        source == .netrc && mark.map { $0 < memory.netrcMark } ?? false
    }

    /// Whether it was stored when it was chosen, and forgotten since then.
    func isForgotten(_ candidate: Candidate, in space: ProtectionSpace, _ memory: CredentialMemory) -> Bool {
        if isOfFormerNetrc(candidate.source, since: candidate.mark, memory) { return true }
        guard isStored(candidate.source), let mark = candidate.mark else { return false }
        return !memory.forgets.isCurrent(mark, for: space, user: candidate.credential.shownUser)
    }

    /// Takes over the nonce that the server has announced, unless the session was forgotten meanwhile.
    func follow(
        _ exchange: DigestExchange, _ info: AuthenticationInfo, _ attempt: inout Attempt,
        _ memory: inout CredentialMemory
    ) {
        if isCurrent(attempt, memory) { attempt.follow(exchange, info, nonces: &memory.session.nonces) }
    }
}
