internal import WatchwordProtocol

/// What one fetch sends alone until the server has said whether it is right: semantics rule 22.
extension FetchMachine {
    /// `false`, and then the fetch has to wait, where another one has sent the same credential and has no verdict yet.
    mutating func beginTrial(
        _ attempt: Attempt, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> Bool {
        attempt.isProven(now: environment.now)
            || memory.turns.beginTrial(
                of: attempt.credential, in: attempt.space, by: id, isKnown: attempt.provenAt != nil,
                now: environment.now)
    }

    /// Before a request: a login of the session that was accepted too long ago, or a proxy's that this fetch has used before,
    /// goes out when no other fetch is trying it.
    mutating func awaitVerdict(_ environment: FetchEnvironment, _ memory: inout CredentialMemory) -> FetchStep? {
        for side in Side.allCases {
            guard let attempt = outgoing[side], !beginTrial(attempt, environment, &memory) else { continue }
            return pause(.request(side), TurnSlot(attempt.space), at: .trial, environment, &memory)
        }
        return nil
    }

    /// What another fetch has found out to be right goes out; what was refused meanwhile does not, and what the session has is
    /// chosen again.
    mutating func resumedRequest(
        isProven: Bool, _ paused: Paused, _ environment: FetchEnvironment, _ memory: inout CredentialMemory
    ) -> FetchStep {
        if isProven, let side = paused.side { outgoing[side]?.provenAt = environment.now }
        for side in Side.allCases where !isProven || side != paused.side {
            guard let attempt = outgoing[side] else { continue }
            let isRefused = memory.refusals.hasRefused(
                attempt.credential, in: attempt.space, since: lastRefusalBefore)
            if attempt.isPreemptive || isRefused { outgoing[side] = nil }
        }
        return startHop(environment, &memory, events: [])
    }

    /// Time has passed: the fetch has waited for long enough, for its client or for a verdict. `nil` when it has not.
    mutating func endWait(_ environment: FetchEnvironment, _ memory: inout CredentialMemory) -> FetchStep? {
        if case .lookingUp(_, let since) = state, time.isUsedUp(at: environment.now, inWaitSince: since) {
            return timedOut(&memory)
        }
        guard case .waiting(let paused, let place, let since) = state else { return nil }
        if time.isUsedUp(at: environment.now, inWaitSince: since) { return timedOut(&memory) }
        if environment.now >= time.end(ofWaitSince: since) {
            let text =
                "\(challenger(of: paused).text) asks for a login, and the question that another fetch has put about it was not answered in \(Limits.turnWait)."
            return fail(FetchFailure(.challengeTimedOut, text), &memory)
        }
        guard case .trial = place, let end = memory.turns.patienceEnd(of: id), environment.now >= end else {
            return nil
        }
        memory.turns.leave(id, from: .trial)
        return resumed(SpaceTurns.Wake(fetch: id, news: .lookAgain, declined: []), environment, &memory)
    }

    mutating func timedOut(_ memory: inout CredentialMemory) -> FetchStep { fail(timeoutFailure, &memory) }

    var timeoutFailure: FetchFailure {
        FetchFailure(.timedOut, "\(hop.url.origin.text) took longer than \(plan.timeout) in all")
    }

    /// What the fetch waits for; `nil` where it does not wait for another one.
    func wait(_ memory: CredentialMemory) -> FetchWait? {
        guard case .waiting(_, let place, _) = state else { return queueWait(memory) }
        return memory.turns.wait(of: id, at: place)
    }

    /// See `FetchTable.deadline`.
    func deadline(_ memory: CredentialMemory) -> Duration? {
        if case .lookingUp(_, let since) = state { return time.boundsWaiting ? since + time.left : nil }
        guard case .waiting(_, let place, let since) = state else { return queuedSince.map(time.end(ofWaitSince:)) }
        let end = time.end(ofWaitSince: since)
        guard case .trial = place, let patience = memory.turns.patienceEnd(of: id) else { return end }
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
