internal import WatchwordProtocol

/// What is remembered of a login, and what is forgotten: semantics rules 17 to 19.
extension LoginResolution {
    /// Rule 17: stored values go only if they are the refused ones.
    mutating func note(
        _ attempt: Attempt, refusedWith offers: OfferList, _ context: inout FetchContext
    ) {
        let challenger = attempt.challenger
        let sent = attempt.space
        let attempt = attempt.named(by: offers)
        let spaces = offers.answerable.map { $0.protectionSpace(at: challenger) }
        // Sent on a guess by path into a part of the server that has another realm: nobody looked at the password.
        if attempt.isPreemptive && !spaces.contains(attempt.space) {
            return context.turns.endTrial(by: intent.id, in: sent)
        }
        context.turns.endTrial(by: intent.id, in: sent, .refused)
        let others = attempt.inOtherRealms(of: offers)
        search.situation[challenger].noteRefusal(of: attempt, andOf: others)
        for other in others {
            context.refusals.note(
                attempt.credential, attempt.source, in: search.situation.turnKey(for: other.space, .own, context))
        }
        search.situation.note(.credentialRefused, attempt, &context)
        search.situation.judge(attempt.space, attempt.credential.shownUser, isAccepted: false, &context)
        let login = ConnectionMarks.Login(attempt)
        context.identities.forget { $0.handshake == login || $0.tunnel == login }
        if attempt.challenge == .negotiate {
            // Whatever is wrong with the tickets, it is no wrong password.
            search.situation[challenger].asksBeforeWeaker = true
        }
        let key =
            search.situation.turns[TurnSlot(attempt.space)]
            ?? search.situation.turnKey(for: attempt.space, .find, scope: attempt.challenge.scope, context)
        context.refusals.note(attempt.credential, attempt.source, in: key)
        if attempt.space != sent {
            context.refusals.note(
                attempt.credential, attempt.source, in: search.situation.turnKey(for: sent, .own, context))
        }
        // Through a proxy that forwards, a server can say 407 too: what the proxy has taken before is not lost over that.
        let isDoubtful =
            attempt.space.proxyType != nil && !search.situation.chain.isTunnel
            && (attempt.isAccepted || attempt.source == .session)
        guard search.situation.mayUseStorage(for: attempt.space, context) else { return }
        guard !isDoubtful else {
            return context.session.doubt(attempt.credential, for: attempt.space, owner: attempt.home)
        }
        if context.session.forget(attempt.credential, for: attempt.space, owner: attempt.home, at: challenger) {
            context.add(.announce(CredentialChange(.forgotten, attempt, in: .session)))
        }
        if [.keyring, .netrc].contains(attempt.source) {
            context.keyring.noteRefusal(
                of: attempt.credential, in: attempt.space, isOfNetrc: attempt.source == .netrc, now: context.now)
            if let item = attempt.item, !attempt.isCalledStale(by: offers) {
                context.add(.remove(item: item, attempt.credential))
            }
        }
    }

    /// The token is not good for this, and may be for all else: it stays, and is not sent again for the same in this fetch
    /// (semantics rule 29).
    mutating func noteTooNarrow(_ attempt: Attempt, for wanted: AnswerableChallenge, _ context: inout FetchContext) {
        context.turns.endTrial(by: intent.id, in: attempt.space)
        search.situation[attempt.challenger].noteTooNarrow(attempt.credential, for: wanted)
    }

    /// Nothing is written before the server has accepted it.
    mutating func remember(
        _ attempt: Attempt, path: ExactText, isProven: Bool, _ context: inout FetchContext
    ) {
        guard search.situation.mayUseStorage(for: attempt.space, context), attempt.credential.persistence != .none,
            attempt.mayBeRemembered
        else { return }
        if [.client, .agent].contains(attempt.source) { context.keyring.noteAnswer(for: path, in: attempt.space) }
        var credential = attempt.credential
        if credential.form == .token, credential.scope == nil { credential.scope = attempt.challenge.scope }
        let wasGiven = context.session.wasGiven(credential, for: attempt.space)
        let isNews = context.session.remember(
            credential, for: attempt.space, owner: attempt.home,
            by: attempt.source.isBrought ? intent.access.holder : nil,
            path: path, digest: attempt.challenge.digest, isProven: isProven, now: context.now)
        if isNews {
            if !wasGiven { context.add(.announce(CredentialChange(.stored, attempt, in: .session))) }
            context.keyring.forgetRefusals(in: attempt.space, accepting: credential)
            context.turns.credentialArrived(for: attempt.space, owner: attempt.home)
        }
        // Whoever was asked may want to keep for good what the session has already; those who waited for it ask for nothing.
        guard isNews || search.situation.turns[TurnSlot(attempt.space)] != nil else { return }
        if attempt.credential.persistence == .permanent, attempt.credential.form == .password,
            !attempt.space.lacksRealm,
            context.keyring.mayStore(from: attempt.source, now: context.now), intent.mayKeepForGood(attempt.source)
        {
            context.add(.store(attempt.credential, SpacePattern(attempt.space)))
        }
    }
}
