internal import WatchwordProtocol

/// What one fetch sends alone until the server has said whether it is right: semantics rule 22.
extension FetchMachine {
    /// `false`, and then the fetch has to wait, where another one has sent the same credential and has no verdict yet.
    mutating func beginTrial(
        _ attempt: Attempt, _ context: inout FetchContext
    ) -> Bool {
        attempt.isProven(now: context.now)
            || context.turns.beginTrial(
                of: attempt.credential, in: attempt.space, by: id, isKnown: attempt.provenAt != nil,
                now: context.now)
    }

    /// Before a request: a login of the session that was accepted too long ago, or a proxy's that this fetch has used before,
    /// goes out when no other fetch is trying it.
    mutating func awaitVerdict(_ context: inout FetchContext) -> FetchStep? {
        for side in Side.allCases {
            guard let attempt = outgoing[side], !beginTrial(attempt, &context) else { continue }
            return pause(.request(side), TurnSlot(attempt.space), at: .trial, &context)
        }
        return nil
    }

    /// What another fetch has found out to be right goes out; what was refused meanwhile does not, and what the session has is
    /// chosen again.
    mutating func resumedRequest(
        isProven: Bool, _ paused: Paused, _ context: inout FetchContext
    ) -> FetchStep {
        if isProven, let side = paused.side { outgoing[side]?.provenAt = context.now }
        for side in Side.allCases where !isProven || side != paused.side {
            guard let attempt = outgoing[side] else { continue }
            let isRefused = context.refusals.hasRefused(
                attempt.credential, in: attempt.space, since: lastRefusalBefore)
            if attempt.isPreemptive || isRefused { outgoing[side] = nil }
        }
        return startHop(&context, events: [])
    }

    /// Time has passed: the fetch has waited for long enough, for its client or for a verdict. `nil` when it has not.
    mutating func endWait(_ context: inout FetchContext) -> FetchStep? {
        if case .lookingUp(_, let since) = state, time.isUsedUp(at: context.now, inWaitSince: since) {
            return timedOut(&context)
        }
        guard case .waiting(let paused, let place, let since) = state else { return nil }
        if time.isUsedUp(at: context.now, inWaitSince: since) { return timedOut(&context) }
        if context.now >= time.end(ofWaitSince: since) {
            let text =
                "\(challenger(of: paused).text) asks for a login, and the question that another fetch has put about it was not answered in \(Limits.turnWait)."
            return fail(FetchFailure(.challengeTimedOut, text), &context)
        }
        guard case .trial = place, let end = context.turns.patienceEnd(of: id), context.now >= end else {
            return nil
        }
        context.turns.leave(id, from: .trial)
        return resumed(SpaceTurns.Wake(fetch: id, news: .lookAgain, declined: []), &context)
    }

    mutating func timedOut(_ context: inout FetchContext) -> FetchStep { fail(timeoutFailure, &context) }

    var timeoutFailure: FetchFailure {
        FetchFailure(.timedOut, "\(hop.url.origin.text) took longer than \(plan.timeout) in all")
    }

    /// What the fetch waits for; `nil` where it does not wait for another one.
    func wait(_ context: FetchContext) -> FetchWait? {
        guard case .waiting(_, let place, _) = state else { return queueWait(context) }
        return context.turns.wait(of: id, at: place)
    }

    /// See `FetchTable.deadline`.
    func deadline(_ context: FetchContext) -> Duration? {
        if case .lookingUp(_, let since) = state { return time.boundsWaiting ? since + time.left : nil }
        guard case .waiting(_, let place, let since) = state else { return queuedSince.map(time.end(ofWaitSince:)) }
        let end = time.end(ofWaitSince: since)
        guard case .trial = place, let patience = context.turns.patienceEnd(of: id) else { return end }
        return min(end, patience)
    }

    /// Whether a connection that is kept open would hide that the password is wrong by now: it was logged in before.
    func needsNewConnection(now: Duration) -> Bool {
        let logins = [outgoing.handshake?.attempt, isTunnel ? outgoing.proxy : nil]
        return logins.contains { attempt in
            guard let attempt, attempt.challenge != .negotiate else { return false }
            return attempt.provenAt != nil && !attempt.isProven(now: now)
        }
    }
}
