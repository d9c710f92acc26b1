internal import WatchwordProtocol

/// Finds credentials for a challenge, or to send before one: SEMANTICS rules 15 to 19 and 23 to 25.
///
/// Changes no state: `LoginResolution` tries or proposes the results.
extension HopState {
    // MARK: Usable credentials

    /// Returns the problem that a credential has regardless of the scheme, if any: it has expired, or is for another
    /// path.
    func problem(
        with credential: LoginCredential, at challenger: Challenger, _ context: FetchContext
    ) -> Challenge.AnswerProblem? {
        if credential.isExpired(at: context.session.wallTime) { return .credentialExpired }
        return credential.covers(chain.path(at: challenger)) ? nil : .credentialForOtherPath
    }

    /// Whether the session or the keyring may have a credential for a narrower path, which takes precedence (SEMANTICS rule 18).
    func isNarrowerStored(
        than credential: LoginCredential, in space: ProtectionSpace, _ context: FetchContext
    ) -> Bool {
        isNarrowerInSession(than: credential, at: Challenger(space), context)
            || isNarrowerInKeyring(than: credential, in: space, context)
    }

    /// Whether a server might read the path as one of a narrower credential of the session. One that covers it as it is written
    /// is tried first.
    func isNarrowerInSession(than credential: LoginCredential, at challenger: Challenger, _ context: FetchContext)
        -> Bool
    {
        fetch.access.readable.contains { part in
            context.session.mayBeNarrower(
                than: credential, at: challenger, of: part, user: fetch.namedUser(at: challenger),
                path: chain.path(at: challenger), now: context.now)
        }
    }

    private func isNarrowerInKeyring(
        than credential: LoginCredential, in space: ProtectionSpace, _ context: FetchContext
    ) -> Bool {
        let challenger = Challenger(space)
        guard keyringItems(at: challenger, context) != nil || context.keyring.shouldQuery(now: context.now) else {
            return false
        }
        return context.keyring.paths.hasNarrower(  // guard: keyring-narrower-than-session
            than: credential, for: chain.path(at: challenger), in: space, user: fetch.namedUser(at: challenger))
    }

    func isDowngrade(
        _ challenge: AnswerableChallenge, _ challenger: Challenger, _ context: FetchContext,
        _ reach: AcceptedStrength.Reach = .realm
    ) -> Bool {
        context.session.nonces.accepted.isDowngrade(
            challenge, at: challenger, path: chain.path(at: challenger), reach: reach)
    }

    func isUsable(
        _ candidate: Candidate, for challenge: AnswerableChallenge, in space: ProtectionSpace,
        _ context: FetchContext
    ) -> Bool {
        let challenger = Challenger(space)
        return challenge.canCarry(candidate.credential, at: challenger)
            && problem(with: candidate.credential, at: challenger, context) == nil
            && !self[challenger].hasRefused(candidate.credential, in: space)
            && !self[challenger].tokens.isTooNarrow(candidate.credential, for: challenge)
            && !consent.isRefused(consent.use(of: candidate, in: space, context))
    }

    // MARK: Consent

    /// Whether the candidate may be used without a prompt.
    func isConsented(_ candidate: Candidate, in space: ProtectionSpace, _ context: FetchContext) -> Bool {
        consent.isConsented(consent.use(of: candidate, in: space, context), context)
    }

    func isConsented(_ attempt: Attempt, _ context: FetchContext) -> Bool {  // guard: consent-on-the-way
        if fetch.access.subject == nil { return true }
        let candidate = Candidate(credential: attempt.credential, source: attempt.source, partition: attempt.partition)
        return isConsented(candidate, in: attempt.space, context)
    }

    // MARK: Forgotten credentials

    /// Whether the outcome of the attempt may be remembered and shared: no matching credential was forgotten by hand
    /// since it began.
    func isCurrent(_ attempt: Attempt, _ context: FetchContext) -> Bool {
        guard let mark = attempt.mark else { return false }
        return context.forgets.isCurrent(mark, for: attempt.space, user: attempt.credential.shownUser)
    }

    /// Whether the credential came from another netrc file or command than those configured now.
    func isOfFormerNetrc(_ source: CredentialSource, since mark: ForgetLog.Mark?, _ context: FetchContext) -> Bool {
        source.isWithoutRealm && mark.map { $0 < context.forgets.netrcMark } ?? false
    }

    /// Whether the candidate was stored when it was chosen, and has been forgotten since then.
    func isForgotten(_ candidate: Candidate, in space: ProtectionSpace, _ context: FetchContext) -> Bool {
        if isOfFormerNetrc(candidate.source, since: candidate.mark, context) { return true }
        guard candidate.source.isStored, let mark = candidate.mark else { return false }
        return !context.forgets.isCurrent(mark, for: space, user: candidate.credential.shownUser)
    }

    // MARK: Tokens

    /// Returns the rule by which a token for this challenge is obtained, if any. A token is a stored credential.
    func tokenRule(for challenge: AnswerableChallenge, in space: ProtectionSpace, _ context: FetchContext) -> OAuthRule?
    {
        // A token service could require a token of its own for its replies, without end.
        guard case .bearer = challenge, space.proxyType == nil, !fetch.isLoginStep,
            allowsStorageNow(for: space, context)
        else { return nil }
        return context.environment.rules.tokens.rule(for: chain.hop.url)
    }
}
