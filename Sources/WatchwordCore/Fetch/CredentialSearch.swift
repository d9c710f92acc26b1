internal import WatchwordProtocol

/// Finds credentials for a challenge, or to send before one: semantics rules 15 to 19 and 23 to 25.
///
/// It changes nothing; `LoginResolution` tries or proposes what it finds.
struct CredentialSearch: Sendable {
    var situation: FetchSituation

    var intent: FetchIntent { situation.intent }
    var chain: RedirectChain { situation.chain }
    var server: Challenger { situation.server }

    // MARK: Whether it may be sent

    /// Why a credential is not sent here and now, whatever the scheme.
    func problem(
        with credential: LoginCredential, at challenger: Challenger, _ context: FetchContext
    ) -> Challenge.AnswerProblem? {
        if credential.isExpired(at: context.session.wallTime) { return .credentialExpired }
        return credential.covers(chain.path(at: challenger)) ? nil : .credentialForOtherPath
    }

    /// Whether the keyring may have something for a narrower path, which goes first (semantics rule 18).
    func isNarrowerStored(
        than credential: LoginCredential, in space: ProtectionSpace, _ context: FetchContext
    ) -> Bool {
        let challenger = Challenger(space)
        guard keyringItems(at: challenger, context) != nil || context.keyring.isWorthAsking(now: context.now) else {
            return false
        }
        return context.keyring.paths.hasNarrower(
            than: credential, for: chain.path(at: challenger), in: space, user: intent.namedUser(at: challenger))
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
            && !situation[challenger].hasRefused(candidate.credential, in: space)
            && !situation[challenger].isTooNarrow(candidate.credential, for: challenge)
            && !situation.consent.isRefused(situation.consent.use(of: candidate, in: space, context))
    }

    // MARK: Consent

    /// Whether it may be used without asking anybody.
    func isConsented(_ candidate: Candidate, in space: ProtectionSpace, _ context: FetchContext) -> Bool {
        situation.consent.isConsented(situation.consent.use(of: candidate, in: space, context), context)
    }

    func isConsented(_ attempt: Attempt, _ context: FetchContext) -> Bool {
        if intent.access.subject == nil { return true }
        let candidate = Candidate(credential: attempt.credential, source: attempt.source, home: attempt.home)
        return isConsented(candidate, in: attempt.space, context)
    }

    // MARK: What was forgotten meanwhile

    /// Whether what comes of the attempt may be remembered, and serve others: nothing was forgotten by hand in its course that
    /// means it.
    func isCurrent(_ attempt: Attempt, _ context: FetchContext) -> Bool {
        guard let mark = attempt.mark else { return false }
        return context.forgets.isCurrent(mark, for: attempt.space, user: attempt.credential.shownUser)
    }

    /// Whether it comes of a netrc file that the configuration does not name any more.
    func isOfFormerNetrc(_ source: CredentialSource, since mark: ForgetLog.Mark?, _ context: FetchContext) -> Bool {
        source == .netrc && mark.map { $0 < context.forgets.netrcMark } ?? false
    }

    /// Whether it was stored when it was chosen, and forgotten since then.
    func isForgotten(_ candidate: Candidate, in space: ProtectionSpace, _ context: FetchContext) -> Bool {
        if isOfFormerNetrc(candidate.source, since: candidate.mark, context) { return true }
        guard candidate.source.isStored, let mark = candidate.mark else { return false }
        return !context.forgets.isCurrent(mark, for: space, user: candidate.credential.shownUser)
    }
}
