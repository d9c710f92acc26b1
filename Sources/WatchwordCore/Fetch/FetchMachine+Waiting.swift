internal import WatchwordProtocol

/// Waiting for other fetches, with limits of time: SEMANTICS rules 20 to 22.
extension FetchMachine {
    // MARK: Queues

    /// Waits at `place`. Releases leases of later slots, so that no two fetches wait for each other (see `LeaseSlot`).
    mutating func pause(
        _ step: WaitingStep, _ slot: LeaseSlot, at place: AuthenticationQueues.QueuePosition,
        _ context: inout FetchContext
    ) -> FetchCommand {
        hop.leases.release(after: slot, &context)
        state = .waiting(step, at: place, since: context.now)
        return .wait
    }

    /// Leaves the queue, so that the fetch is not woken.
    func leaveQueue(_ context: inout FetchContext) {
        if case .waiting(_, let place, _) = state { context.queues.leave(fetch.id, from: place) }
    }

    mutating func resumed(
        _ wake: AuthenticationQueues.Wake, _ step: WaitingStep, at place: AuthenticationQueues.QueuePosition,
        since: Duration,
        _ context: inout FetchContext
    ) -> FetchCommand {
        time.recordWait(context.now - since)
        switch step {
        case .request(let side):
            logins.recordVerdict(wake.news, at: side, hop, context)
            return startHop(&context)
        case .question(var question):
            if case .queue(let key) = place, wake.news == .lease { hop.leases.record(key) }
            // If this fetch's certificate was refused or cannot be used (`problem`), its question differs from that of
            // the other fetch, so respondents that declined there are still asked here.
            if question.problem == nil { question.declined.formUnion(wake.declined) }
            return apply(wake.news, question, &context)
        }
    }

    /// Applies an update from another fetch with the same question. If this fetch has a handler to ask next, the answer
    /// to the other fetch does not apply.
    private mutating func apply(
        _ update: AuthenticationQueues.QueueUpdate, _ question: Question, _ context: inout FetchContext
    ) -> FetchCommand {
        var question = question
        let next = hop.nextRespondent(for: question)
        switch update {
        case .lease, .retryLookup: return choose(question, &context)
        case .admitted(let provenAt):
            if let provenAt { question.deferred?.provenAt = provenAt }
            return choose(question, &context)
        case .accepted(let found, let isShared):
            if hop.isForHandler(question, despite: found) { return choose(question, &context) }
            question.mark = nil
            return follow(found, isShared: isShared, question, &context)
        case .proceed where next == .handler, .cancelled where next == .handler, .rejected where next == .handler:
            return choose(question, &context)
        case .proceed where question.problem != nil:
            return choose(question, &context)
        case .proceed:
            question.declined.recordAnswer()
            return proceed(question, &context)
        case .cancelled(let isOwn) where !isOwn && next != .agents,
            .rejected(let isOwn) where !isOwn && next != .agents:
            return choose(question, &context)
        case .cancelled:
            return fail(.challengeCancelled(at: hop.challenger(of: question)), &context)
        case .rejected:
            switch question.kind {
            case .login:
                logins.recordRejection(of: question, &hop)
                question.declined.recordRejection()
                return choose(question, &context)
            case .serverTrust(let facts):
                return take(trust.distrust(question, facts, &hop, &context), &context)
            case .clientCertificate: return proceed(question, &context)
            }
        }
    }

    /// Uses the credential or decision that was accepted for another fetch, if this one can use it; otherwise chooses
    /// again.
    private mutating func follow(
        _ found: AuthenticationQueues.SharedDecision, isShared: Bool, _ question: Question,
        _ context: inout FetchContext
    ) -> FetchCommand {
        let resolution: Resolution?
        switch (found, question.kind) {
        case (.login(let credential, let source), .login):
            resolution = logins.follow(credential, from: source, isShared: isShared, question, &hop, &context)
        case (.trust(let decision), .serverTrust) where isShared:
            resolution = trust.trust(decision, question, &hop, &context)
        case (.certificate(let shown, let source), .clientCertificate)
        where isShared && !hop[chain.server].hasRefused(shown)
            && (fetch.access.subject == nil || source != .session):
            resolution = certificate.show(shown, source, question, &hop, &context)
        case (.login, _), (.trust, _), (.certificate, _): resolution = nil
        }
        return take(resolution ?? .chooseAgain(question), &context)
    }

    /// Continues without a login or decision, as a respondent has answered for another fetch.
    private mutating func proceed(_ question: Question, _ context: inout FetchContext) -> FetchCommand {
        switch question.kind {
        case .login: take(logins.proceed(question), &context)
        case .serverTrust(let facts):
            take(trust.verifyNormally(question, facts, &hop, &context), &context)
        case .clientCertificate:
            take(certificate.continueWithout(question, &hop, &context), &context)
        }
    }

    // MARK: Time limits

    /// Releases all leases after `Limits.leaseOfSlowResponse`, so that a long download or a hanging server does not block
    /// other fetches. The credential that was sent still has no verdict.
    mutating func releaseLeasesOfSlowResponse(since: Duration, _ context: inout FetchContext) -> FetchCommand? {
        guard context.now - since >= Limits.leaseOfSlowResponse else { return nil }
        hop.leases.releaseAll(&context)
        return nil
    }

    /// Ends a wait that has reached its limit: the fetch fails or, if it waits for a verdict, continues without one.
    /// Returns `nil` before the limit.
    mutating func endOverdueWait(
        _ step: WaitingStep, at place: AuthenticationQueues.QueuePosition, since: Duration,
        _ context: inout FetchContext
    ) -> FetchCommand? {
        if time.isUsedUp(at: context.now, inWaitSince: since) { return fail(timeoutFailure, &context) }
        if context.now >= time.end(ofWaitSince: since) {
            let text =
                "timed out after \(Limits.leaseWait) waiting for another fetch that handles a challenge of \(challenger(of: step).text); try again"
            return fail(FetchFailure(.challengeTimedOut, text), &context)
        }
        guard let end = context.queues.nextTry(of: fetch.id, at: place), context.now >= end else { return nil }
        if case .queue(let key) = place { return tryUnproven(in: key, step, since: since, &context) }
        context.queues.leave(fetch.id, from: place)
        let wake = AuthenticationQueues.Wake(fetch: fetch.id, news: .retryLookup, declined: [])
        return resumed(wake, step, at: place, since: since, &context)
    }

    /// Sends the credential on which the holder of the lease has waited too long for a verdict. Returns `nil` if this
    /// fetch cannot use it, and continues to wait.
    private mutating func tryUnproven(
        in key: AuthenticationQueues.Key, _ step: WaitingStep, since: Duration, _ context: inout FetchContext
    ) -> FetchCommand? {
        guard case .question(let question) = step,
            let trial = context.queues.trial(in: key, for: fetch.id, isOwn: key.purpose == .own),
            !hop.isForHandler(question, despite: .login(trial.login.credential, trial.source)),
            let candidate = logins.unproven(trial, question, hop, context)
        else {
            context.queues.recordUselessTrial(in: key, for: fetch.id)
            return nil
        }
        var deferring = question
        deferring.deferred = candidate
        context.queues.leave(fetch.id, from: .queue(key))
        time.recordWait(context.now - since)
        return choose(deferring, &context)
    }

    private func challenger(of step: WaitingStep) -> Challenger {
        switch step {
        case .question(let question): hop.challenger(of: question)
        case .request(let side): logins.outgoing[side]?.challenger ?? chain.server
        }
    }

    var timeoutFailure: FetchFailure {
        FetchFailure(
            .timedOut,
            "timed out after \(fetch.timeout) in total while fetching from \(chain.origin.text); allow more time")
    }

    /// See `FetchTable.deadline`.
    func deadline(_ context: FetchContext) -> Duration? {
        if let since = lookUpStart { return time.boundsWaiting ? since + time.left : nil }
        guard case .waiting(_, let place, let since) = state else { return queuedSince.map(time.end(ofWaitSince:)) }
        let end = time.end(ofWaitSince: since)
        return min(end, context.queues.nextTry(of: fetch.id, at: place) ?? end)
    }

    /// When the current lookup was started; `nil` if there is none.
    private var lookUpStart: Duration? {
        switch state {
        case .lookingUp(_, let since), .findingUpstreams(_, let since): since
        default: nil
        }
    }

    // MARK: Queued questions

    /// When the last `ask` or `confirm` was queued behind other questions, because an agent accepts only a
    /// limited number (`maxPending`); `nil` if it was not queued, or has been delivered since then. The time in this
    /// queue counts as waiting for other fetches.
    private var queuedSince: Duration? {
        switch state {
        case .asking, .confirming: time.queuedSince
        case .ready, .transferring, .consulting, .waiting, .lookingUp, .findingUpstreams, .needingBody, .finished: nil
        }
    }

    mutating func queued(now: Duration) { time.recordQueued(now) }

    mutating func delivered(now: Duration) { time.endQueue(now) }

    /// Returns what the fetch waits for; `nil` if it does not wait for another fetch. For a queued question, the result
    /// contains the space of that question, not of those ahead of it, which may belong to other programs.
    func wait(_ context: FetchContext) -> FetchWait? {
        if case .waiting(_, let place, _) = state { return context.queues.wait(of: fetch.id, at: place) }
        guard let since = queuedSince else { return nil }
        if case .confirming(_, let use, _) = state {
            return FetchWait(reason: .question, space: use.space, since: since)
        }
        guard case .asking(let question, _) = state, let space = hop.space(of: question) else {
            return nil
        }
        return FetchWait(reason: .question, space: space, since: since)
    }

    /// Returns the failure of a fetch whose time is used up while its question is queued; `nil` otherwise.
    func queueTimeout(now: Duration) -> FetchFailure? {
        guard let since = queuedSince, time.isUsedUp(at: now, inWaitSince: since) else { return nil }
        return timeoutFailure
    }
}
