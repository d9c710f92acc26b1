internal import WatchwordProtocol

/// Which logins the next request carries: semantics rules 16 and 22.
extension LoginResolution {
    /// A new hop: nothing of the last one goes along but what is for the same place.
    mutating func enterHop(isOtherRoute: Bool) {
        if isOtherRoute { outgoing.proxy = nil }
        outgoing.server = nil
        handshakeQuestion = nil
    }

    /// Before the first request of a hop: what the session has for those on the way. Returns what the client has to be asked
    /// first.
    mutating func prepare(_ context: inout FetchContext) -> Consultation? {
        context.session.wallTime = context.environment.sinceEpoch
        for side in Side.allCases where outgoing[side] == nil {
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

    /// What is stored does not flow over an exception (rule 24), nor past a lock: not even what was on its way.
    mutating func dropStored(_ context: inout FetchContext) {
        for side in Side.allCases {
            guard let attempt = outgoing[side],
                !search.situation.mayUse(attempt.source, for: attempt.space, context)
                    || !search.isConsented(attempt, context)
                    || attempt.source.isStored && !search.isCurrent(attempt, context)
                    || search.isOfFormerNetrc(attempt.source, since: attempt.mark, context)
            else { continue }
            outgoing[side] = nil
            context.turns.endTrial(by: intent.id, in: attempt.space)
        }
    }

    // MARK: Trials

    /// `false`, and then the fetch has to wait, where another one has sent the same credential and has no verdict yet.
    func beginTrial(_ attempt: Attempt, _ context: inout FetchContext) -> Bool {
        attempt.isProven(now: context.now)
            || context.turns.beginTrial(
                of: attempt.credential, in: attempt.space, by: intent.id, isKnown: attempt.provenAt != nil,
                now: context.now)
    }

    /// Before a request: a login of the session that was accepted too long ago, or a proxy's that this fetch has used before,
    /// goes out when no other fetch is trying it. The side whose login has to wait for that; `nil` where none has.
    func sideOnTrial(_ context: inout FetchContext) -> Side? {
        for side in Side.allCases {
            if let attempt = outgoing[side], !beginTrial(attempt, &context) { return side }
        }
        return nil
    }

    /// The verdict is there. What another fetch has found out to be right goes out; what was refused meanwhile does not, and
    /// what the session has is chosen again.
    mutating func noteVerdict(_ news: SpaceTurns.News, at side: Side, _ context: FetchContext) {
        let isProven = news == .proven || news == .taken && outgoing[side]?.isUnasked == true
        if isProven { outgoing[side]?.provenAt = context.now }
        for other in Side.allCases where !isProven || other != side {
            guard let attempt = outgoing[other] else { continue }
            let isRefused = context.refusals.hasRefused(
                attempt.credential, in: attempt.space, since: intent.lastRefusalBefore)
            if attempt.isPreemptive || isRefused { outgoing[other] = nil }
        }
    }

    /// Whether a connection that is kept open would hide that the password is wrong by now: it was logged in before.
    func needsNewConnection(now: Duration) -> Bool {
        let logins = [outgoing.handshake?.attempt, search.situation.chain.isTunnel ? outgoing.proxy : nil]
        return logins.contains { attempt in
            guard let attempt, attempt.challenge != .negotiate else { return false }
            return attempt.provenAt != nil && !attempt.isProven(now: now)
        }
    }

    /// What the request that goes out now carries for the first time: the one place through which every login passes.
    mutating func noteUses(_ context: inout FetchContext) {
        for side in Side.allCases {
            guard let attempt = outgoing[side], !attempt.isNoted else { continue }
            outgoing[side]?.isNoted = true
            search.situation.note(.credentialUsed, attempt, &context)
        }
    }
}
