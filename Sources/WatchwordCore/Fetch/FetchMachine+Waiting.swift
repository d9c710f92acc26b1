internal import WatchwordProtocol

/// Waiting for other fetches, and how long: semantics rules 20 to 22.
extension FetchMachine {
    // MARK: Turns

    /// Not with what belongs further on the way, so that no two fetches wait for each other (see `TurnSlot`).
    mutating func pause(
        _ paused: Paused, _ slot: TurnSlot, at place: SpaceTurns.WaitingPlace, _ context: inout FetchContext
    ) -> FetchStep {
        logins.search.situation.turns.release(after: slot, &context)
        context.turns.endTrial(by: intent.id)
        state = .waiting(paused, at: place, since: context.now)
        return FetchStep(.wait)
    }

    /// It is not woken any more.
    func leaveQueue(_ context: inout FetchContext) {
        if case .waiting(_, let place, _) = state { context.turns.leave(intent.id, from: place) }
    }

    mutating func resumed(
        _ wake: SpaceTurns.Wake, _ paused: Paused, at place: SpaceTurns.WaitingPlace, since: Duration,
        _ context: inout FetchContext
    ) -> FetchStep {
        time.noteWait(context.now - since)
        switch paused {
        case .request(let side):
            logins.noteVerdict(wake.news, at: side, context)
            return startHop(&context, events: [])
        case .question(var question):
            if case .line(let key) = place, wake.news == .turn { logins.search.situation.turns.note(key) }
            question.declined.formUnion(wake.declined)
            return heard(wake.news, question, &context)
        }
    }

    /// What another fetch has come to, about the same question. What others have decided is not decided for the fetch's own
    /// handler.
    private mutating func heard(
        _ news: SpaceTurns.News, _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        var question = question
        let next = logins.search.situation.nextRespondent(for: question)
        switch news {
        case .turn, .lookAgain, .taken: return choose(question, &context)
        case .proven:
            question.deferred?.provenAt = context.now
            return choose(question, &context)
        case .accepted(let found, let isShared):
            if logins.search.situation.isForHandler(question, despite: found) { return choose(question, &context) }
            question.mark = nil
            return follow(found, isShared: isShared, question, &context)
        case .proceed where next == .handler, .cancelled where next == .handler, .rejected where next == .handler:
            return choose(question, &context)
        case .proceed:
            question.declined.noteAnswer()
            return proceed(question, &context)
        case .cancelled(let isOwn) where !isOwn && next != .agents,
            .rejected(let isOwn) where !isOwn && next != .agents:
            return choose(question, &context)
        case .cancelled:
            return fail(.challengeCancelled(at: logins.search.situation.challenger(of: question)), &context)
        case .rejected:
            switch question.kind {
            case .login:
                logins.noteRejection(of: question)
                question.declined.noteRejection()
                return choose(question, &context)
            case .serverTrust(let facts):
                return take(trust.distrust(question, facts, &logins.search.situation, &context), &context)
            case .clientCertificate: return proceed(question, &context)
            }
        }
    }

    /// What another fetch has found out to be right.
    private mutating func follow(
        _ found: SpaceTurns.Found, isShared: Bool, _ question: Question, _ context: inout FetchContext
    ) -> FetchStep {
        let resolution: Resolution?
        switch (found, question.kind) {
        case (.login(let credential, let source), .login):
            resolution = logins.follow(credential, from: source, isShared: isShared, question, &context)
        case (.trust(let decision), .serverTrust) where isShared:
            resolution = trust.trust(decision, question, &logins.search.situation, &context)
        case (.certificate(let shown, let source), .clientCertificate)
        where isShared && !logins.search.situation[chain.server].hasRefused(shown)
            && (intent.access.subject == nil || source != .session):
            resolution = certificate.show(shown, source, question, &logins.search.situation, &context)
        case (.login, _), (.trust, _), (.certificate, _): resolution = nil
        }
        return take(resolution ?? .chooseAgain(question), &context)
    }

    /// Somebody who was asked for another fetch leaves it at what there is.
    private mutating func proceed(_ question: Question, _ context: inout FetchContext) -> FetchStep {
        switch question.kind {
        case .login: take(logins.proceed(question), &context)
        case .serverTrust(let facts):
            take(trust.verifyNormally(question, facts, &logins.search.situation, &context), &context)
        case .clientCertificate: take(certificate.goOnWithout(question, &logins.search.situation, &context), &context)
        }
    }

    // MARK: Time

    /// A download that takes its time, or a server that hangs, is no reason to keep the others from theirs.
    mutating func transferGoesOn(since: Duration, _ context: inout FetchContext) -> FetchStep? {
        guard context.now - since >= Limits.verdictWait else { return nil }
        context.turns.endTrial(by: intent.id)
        logins.search.situation.turns.releaseAll(&context)
        return nil
    }

    /// Time has passed: the fetch has waited for long enough, for its client or for a verdict. `nil` when it has not.
    mutating func waitGoesOn(
        _ paused: Paused, at place: SpaceTurns.WaitingPlace, since: Duration, _ context: inout FetchContext
    ) -> FetchStep? {
        if time.isUsedUp(at: context.now, inWaitSince: since) { return fail(timeoutFailure, &context) }
        if context.now >= time.end(ofWaitSince: since) {
            let text =
                "\(challenger(of: paused).text) asks for a login, and the question that another fetch has put about it was not answered in \(Limits.turnWait)."
            return fail(FetchFailure(.challengeTimedOut, text), &context)
        }
        guard case .trial = place, let end = context.turns.patienceEnd(of: intent.id), context.now >= end else {
            return nil
        }
        context.turns.leave(intent.id, from: .trial)
        let wake = SpaceTurns.Wake(fetch: intent.id, news: .lookAgain, declined: [])
        return resumed(wake, paused, at: place, since: since, &context)
    }

    private func challenger(of paused: Paused) -> Challenger {
        switch paused {
        case .question(let question): logins.search.situation.challenger(of: question)
        case .request(let side): logins.outgoing[side]?.challenger ?? chain.server
        }
    }

    var timeoutFailure: FetchFailure {
        FetchFailure(.timedOut, "\(chain.origin.text) took longer than \(intent.plan.timeout) in all")
    }

    /// See `FetchTable.deadline`.
    func deadline(_ context: FetchContext) -> Duration? {
        if case .lookingUp(_, let since) = state { return time.boundsWaiting ? since + time.left : nil }
        guard case .waiting(_, let place, let since) = state else { return queuedSince.map(time.end(ofWaitSince:)) }
        let end = time.end(ofWaitSince: since)
        guard case .trial = place, let patience = context.turns.patienceEnd(of: intent.id) else { return end }
        return min(end, patience)
    }

    // MARK: Questions in a queue

    /// When the last `ask` or `confirm` was queued behind those of other fetches, at an agent that takes only so many at once
    /// (`maxPending`); `nil` when it was not, or has been delivered. Until then the fetch waits for other fetches, and its time
    /// counts.
    private var queuedSince: Duration? {
        switch state {
        case .asking, .confirming: time.queuedSince
        case .ready, .transferring, .consulting, .waiting, .lookingUp, .needingBody, .finished: nil
        }
    }

    mutating func queued(now: Duration) { time.noteQueued(now) }

    mutating func delivered(now: Duration) { time.endQueue(now) }

    /// What the fetch waits for; `nil` where it does not wait for another one. Of the question before a queued one nothing is
    /// said: it may be another program's.
    func wait(_ context: FetchContext) -> FetchWait? {
        if case .waiting(_, let place, _) = state { return context.turns.wait(of: intent.id, at: place) }
        guard let since = queuedSince else { return nil }
        if case .confirming(_, let use, _) = state {
            return FetchWait(reason: .question, space: use.space, since: since)
        }
        guard case .asking(let question, _) = state, let space = logins.search.situation.space(of: question) else {
            return nil
        }
        return FetchWait(reason: .question, space: space, since: since)
    }

    /// Why the fetch ends in its queue; `nil` where its time is not used up.
    func queueTimeout(now: Duration) -> FetchFailure? {
        guard let since = queuedSince, time.isUsedUp(at: now, inWaitSince: since) else { return nil }
        return timeoutFailure
    }
}
