internal import WatchwordProtocol

/// The logins of the next request: SEMANTICS rules 16 and 22.
extension LoginResolution {
    /// Prepares a new hop: drops the login to the server, and the one to the proxy if the proxy has changed.
    mutating func enterHop(isOtherRoute: Bool) {
        if isOtherRoute { outgoing.proxy = nil }  // guard: redirect-drops-proxy-login
        outgoing.server = nil  // guard: redirect-drops-authorization
        handshakeQuestion = nil
    }

    /// Chooses the logins that the first request of a hop contains before any challenge. Returns the consultation that
    /// the client has to answer before that, if any.
    mutating func prepare(_ context: inout FetchContext) -> Consultation? {
        context.session.wallTime = context.environment.sinceEpoch
        for side in Side.allCases {
            if case .some = outgoing[side] { continue }
            if side == .server, let own = search.unaskedAttempt(context) {
                outgoing.server = own
                continue
            }
            guard let challenger = search.situation.chain.challenger(at: side),
                let attempt = search.preemptiveAttempt(at: challenger, context)
            else { continue }
            if let consultation = search.situation.nextConsultation(for: attempt.space, context) { return consultation }
            if search.situation.mayUseStorage(for: attempt.space, context) { outgoing[side] = attempt }
        }
        return nil
    }

    /// Drops logins that may no longer be used: because of a trust exception (SEMANTICS rule 24), which also ends the
    /// use of answers to earlier questions, a lock or missing consent, or because they were forgotten.
    mutating func discardUnusableCredentials(_ context: inout FetchContext) {
        for side in Side.allCases {
            guard let attempt = outgoing[side],
                // The person was asked about another server.
                // guard: answer-for-the-server-asked-about
                attempt.source == .agent && attempt.steering != search.situation.steering(to: attempt.challenger)
                    || !search.situation.mayUse(attempt.source, for: attempt.space, context)
                    || !search.isConsented(attempt, context)
                    || attempt.source.isStored && !search.isCurrent(attempt, context)
                    || search.isOfFormerNetrc(attempt.source, since: attempt.mark, context)
            else { continue }
            outgoing[side] = nil
            context.queues.endAttempt(by: intent.id, in: attempt.space)
        }
    }

    // MARK: In-flight attempts

    /// Begins an in-flight attempt. Returns `false` if the fetch has to wait, because another one has sent the same
    /// credential and has no verdict yet.
    func beginAttempt(_ attempt: Attempt, _ context: inout FetchContext) -> Bool {
        attempt.isProven(now: context.now)
            || context.queues.beginAttempt(
                of: attempt.credential, in: attempt.space, by: intent.id,
                search.situation.steering(to: attempt.challenger), isKnown: attempt.provenAt != nil, now: context.now)
    }

    /// Returns a side whose login has to wait for the verdict on another fetch's attempt, if any. Such logins are sent
    /// without a new challenge, for example a login of the session that was accepted some time ago, or a login to a
    /// proxy.
    func sideAwaitingVerdict(_ context: inout FetchContext) -> Side? {
        for side in Side.allCases where outgoing[side]?.isProven(now: context.now) == false {
            if let attempt = outgoing[side], !beginAttempt(attempt, &context) { return side }
        }
        return nil
    }

    /// Applies the verdict on another fetch's attempt with the login at `side`. If it was accepted, this fetch sends
    /// the login. All other logins are dropped if they were refused or are preemptive; `prepare` chooses preemptive
    /// logins again.
    mutating func recordVerdict(_ news: AuthenticationQueues.QueueUpdate, at side: Side, _ context: FetchContext) {
        let isProven = news == .proven || news == .taken && outgoing[side]?.isUnasked == true
        if isProven { outgoing[side]?.recordProof(at: context.now) }
        for other in Side.allCases where !isProven || other != side {
            guard let attempt = outgoing[other] else { continue }
            let isRefused = context.refusals.hasRefused(
                attempt.credential, in: attempt.space, search.situation.steering(to: attempt.challenger),
                since: intent.refusalBaseline)
            if attempt.isPreemptive || isRefused { outgoing[other] = nil }
        }
    }

    /// Whether the request needs a new connection. On a connection that has logged in earlier, a changed password would
    /// go unnoticed.
    func needsNewConnection(now: Duration) -> Bool {
        func isOld(_ attempt: Attempt?) -> Bool {
            guard let attempt, attempt.challenge != .negotiate else { return false }
            return attempt.provenAt != nil && !attempt.isProven(now: now)
        }
        return isOld(outgoing.handshake?.attempt) || search.situation.chain.isTunnel && isOld(outgoing.proxy)
    }

    /// Records in the audit log each login that the next request contains, unless that use is recorded already.
    mutating func auditUses(_ context: inout FetchContext) {
        for side in Side.allCases where outgoing[side]?.isAudited == false {
            outgoing[side]?.isAudited = true
            guard let attempt = outgoing[side] else { continue }
            search.situation.audit(.credentialUsed, attempt, &context)
        }
    }
}
