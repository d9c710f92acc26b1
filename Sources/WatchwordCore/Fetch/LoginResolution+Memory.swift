internal import WatchwordProtocol

/// Remembering and forgetting logins: SEMANTICS rules 17 to 19.
extension LoginResolution {
    /// Records a refusal. A stored credential is removed only if its value is the refused one (SEMANTICS rule 17).
    mutating func recordRefusal(
        of attempt: Attempt, with offers: OfferList, _ hop: inout HopState, _ context: inout FetchContext
    ) {
        let challenger = attempt.challenger
        let sent = attempt.space
        let attempt = attempt.named(by: offers)  // guard: unasked-is-refused
        let spaces = offers.answerable.map { $0.protectionSpace(at: challenger) }
        // The credential was sent preemptively because of the path, but this path has another realm, for which the
        // password was not checked.
        if attempt.isPreemptive && !spaces.contains(attempt.space) { return withhold(attempt, hop, &context) }
        context.endAttempt(by: hop.fetch.id, in: sent, .refused)
        let others = attempt.inOtherRealms(of: offers)
        hop[challenger].recordRefusal(of: attempt, andOf: others)
        for other in others {
            context.refusals.record(
                attempt.credential, attempt.source, in: hop.queueKey(for: other.space, .own, context))
        }
        hop.audit(.credentialRefused, attempt, &context)
        hop.report(attempt.space, attempt.credential.shownUser, isAccepted: false, &context)
        let login = ConnectionKey.Login(attempt)
        context.identities.forget { $0.handshake == login || $0.tunnel == login }
        if attempt.challenge == .negotiate {
            // A refused ticket does not mean a wrong password, so a weaker scheme needs a prompt.
            hop[challenger].promptsBeforeDowngrade = true
        }
        let key =
            hop.leases[LeaseSlot(attempt.space)]
            ?? hop.queueKey(for: attempt.space, .find, scope: attempt.challenge.scope, context)
        context.refusals.record(attempt.credential, attempt.source, in: key)
        if attempt.space != sent {
            context.refusals.record(attempt.credential, attempt.source, in: hop.queueKey(for: sent, .own, context))
        }
        // Behind a forwarding proxy, the server can send a 407 as well, so a 407 does not remove a credential that the
        // proxy has accepted.
        let isDoubtful =
            attempt.space.proxyType != nil && !hop.chain.isTunnel
            && (attempt.isAccepted || attempt.source == .session)
        guard hop.allowsStorageNow(for: attempt.space, context) else { return }
        guard !isDoubtful else {
            return context.session.doubt(attempt.credential, for: attempt.space, owner: attempt.partition)
        }
        if context.session.forget(attempt.credential, for: attempt.space, owner: attempt.partition, at: challenger) {
            context.add(.announce(CredentialChange(.forgotten, attempt, in: .session)))
        }
        // The keyring and the netrc file may hold the same login as the session.
        // guard: netrc-refused-once
        if [.keyring, .session].contains(attempt.source) || attempt.source.isWithoutRealm {
            context.keyring.recordRefusal(
                of: attempt.credential, in: attempt.space, isOfNetrc: attempt.source.isWithoutRealm, now: context.now)
        }
        if attempt.source == .keyring || attempt.source.isWithoutRealm, let item = attempt.item,
            !attempt.isCalledStale(by: offers)
        {
            context.add(.remove(item: item, attempt.credential))
        }
    }

    /// Records that the scope of a token is insufficient. The token remains stored, but this fetch does not send it
    /// again for the same scope (SEMANTICS rule 29).
    mutating func recordTooNarrow(
        _ attempt: Attempt, for wanted: AnswerableChallenge, _ hop: inout HopState, _ context: inout FetchContext
    ) {
        context.endAttempt(by: hop.fetch.id, in: attempt.space)
        hop[attempt.challenger].tokens.recordTooNarrow(attempt.credential, for: wanted)
    }

    /// Remembers a login that the server has accepted, as its persistence allows.
    mutating func remember(
        _ attempt: Attempt, path: ExactText, isProven: Bool, _ hop: HopState, _ context: inout FetchContext
    ) {
        guard hop.allowsStorageNow(for: attempt.space, context), attempt.credential.persistence != .none,
            attempt.mayBeRemembered  // guard: remember-readable
        else { return }
        if [.client, .agent].contains(attempt.source) { context.keyring.recordAnswer(for: path, in: attempt.space) }
        var credential = attempt.credential
        if credential.form == .token, credential.scope == nil { credential.scope = attempt.challenge.scope }
        let wasStaged = context.session.wasStaged(credential, for: attempt.space)
        let isNews = context.session.remember(
            credential, for: attempt.space, owner: attempt.partition,
            by: attempt.source.isClientSupplied ? hop.fetch.access.holder : nil,
            path: path, digest: attempt.challenge.digest, isProven: isProven, sentAt: sentAt, now: context.now)
        if isNews {
            if !wasStaged { context.add(.announce(CredentialChange(.stored, attempt, in: .session))) }
            context.keyring.forgetRefusals(in: attempt.space, accepting: credential)
            context.queues.credentialArrived(for: attempt.space, owner: attempt.partition)
        }
        // The answer to the fetch that holds the lease may ask for permanent storage of a credential that the session
        // has already. Fetches that only waited got no answer of their own.
        guard isNews || hop.leases[LeaseSlot(attempt.space)] != nil else { return }
        if attempt.credential.persistence == .permanent, attempt.credential.form == .password,
            !attempt.space.lacksRealm,
            context.keyring.mayStore(from: attempt.source, now: context.now),
            hop.fetch.mayStorePermanently(attempt.source)
        {
            context.add(.store(attempt.credential, SpacePattern(attempt.space)))
        }
    }
}
