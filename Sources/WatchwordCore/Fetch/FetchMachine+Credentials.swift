internal import WatchwordProtocol

/// A credential that may be tried, and where it came from.
struct Candidate: Sendable, Equatable {
    var credential: PasswordCredential
    var source: CredentialSource
    /// See `Attempt.item`.
    var item: String?
}

/// Where credentials come from, and what becomes of them: semantics rules 15 to 19 and 23 to 25.
extension FetchMachine {
    /// What came with the fetch is for the origin that it was given for (semantics rule 23).
    private var isAtFirstOrigin: Bool { hop.url.origin == plan.url.origin }

    /// A fetch that names a user is never made as another one.
    var namedUserHere: String? { isAtFirstOrigin ? plan.namedUser : nil }

    // MARK: Before a challenge

    /// Before a challenge only the session cache may speak (semantics rule 16).
    func preemptiveEntry(_ memory: CredentialMemory, _ now: Duration) -> SessionEntry? {
        guard plan.preemptive, mightUseStorage(memory) else { return nil }
        let entry = memory.session.preemptiveEntry(
            for: hop.url, user: namedUserHere, owner: owner, now: now)
        guard let entry, plan.methods?.contains(entry.space.authenticationMethod) ?? true,
            !target.hasRefused(entry.credential, in: entry.space), agreesWithFetch(entry.credential),
            entry.digest.map({ memory.session.nonces.remembers($0, at: hop.url.origin) }) ?? true
        else { return nil }
        return entry
    }

    func preemptiveAttempt(_ entry: SessionEntry) -> Attempt {
        let challenge = entry.digest.map { AnswerableChallenge.digest($0) } ?? .basic(realm: entry.space.realm ?? "")
        var attempt = Attempt(
            challenge, entry.space, Candidate(credential: entry.credential, source: .session))
        attempt.isPreemptive = true
        return attempt
    }

    /// Whether a cached credential is what the fetch itself would send; true where the fetch names nobody.
    private func agreesWithFetch(_ cached: PasswordCredential) -> Bool {
        guard isAtFirstOrigin else { return true }
        if let own = plan.credential { return own.isSame(as: cached) }
        guard let userInfo = plan.userInfo else { return true }
        return userInfo.user == cached.user && (userInfo.password.map { $0 == cached.password } ?? true)
    }

    // MARK: After a challenge

    /// What came with the fetch: its own credential, then the URL's.
    func ownCandidate(for challenge: AnswerableChallenge, in space: ProtectionSpace) -> Candidate? {
        guard isAtFirstOrigin else { return nil }
        var own: [Candidate] = []
        if let credential = plan.credential { own.append(Candidate(credential: credential, source: .explicit)) }
        if let userInfo = plan.userInfo, let password = userInfo.password {
            let credential = PasswordCredential(user: userInfo.user, password: password)
            own.append(Candidate(credential: credential, source: .url))
        }
        return own.first { isUsable($0, for: challenge, in: space) }
    }

    /// What a server has accepted in this session.
    func acceptedCandidate(
        for challenge: AnswerableChallenge, in space: ProtectionSpace, _ memory: CredentialMemory, _ now: Duration
    ) -> Candidate? {
        guard mayUseStorage(memory), !isDowngrade(challenge, memory) else { return nil }
        let credential = memory.session.credential(
            for: space, user: namedUserHere, owner: owner, at: hop.url.origin, now: now)
        let candidate = credential.map { Candidate(credential: $0, source: .session) }
        return candidate.flatMap { isUsable($0, for: challenge, in: space) ? $0 : nil }
    }

    /// What is stored, and has not been accepted yet: in the session, or in the keyring.
    func storedCandidate(
        for challenge: AnswerableChallenge, in space: ProtectionSpace, _ memory: CredentialMemory, _ now: Duration
    ) -> Candidate? {
        guard mayUseStorage(memory), !isDowngrade(challenge, memory) else { return nil }
        let given = memory.session.givenCredential(for: space, user: namedUserHere, owner: owner, now: now)
        if let given {
            let candidate = Candidate(credential: given, source: .session)
            if isUsable(candidate, for: challenge, in: space) { return candidate }
        }
        let finding = KeyringFinding(target.keyringItems ?? [], for: space, at: hop.url, user: namedUserHere)
        guard case .credential(let credential, let item, let isExact) = finding,
            !memory.keyring.hasRefused(credential, in: space, now: now)
        else { return nil }
        let candidate = Candidate(credential: credential, source: .keyring, item: isExact ? item : nil)
        return isUsable(candidate, for: challenge, in: space) ? candidate : nil
    }

    private func isDowngrade(_ challenge: AnswerableChallenge, _ memory: CredentialMemory) -> Bool {
        memory.session.nonces.accepted.isDowngrade(challenge, at: hop.url.origin)
    }

    private func isUsable(
        _ candidate: Candidate, for challenge: AnswerableChallenge, in space: ProtectionSpace
    ) -> Bool {
        challenge.canCarry(candidate.credential) && !target.hasRefused(candidate.credential, in: space)
    }

    // MARK: What becomes of them

    /// Rule 17: stored values go only if they are the refused ones.
    mutating func note(
        _ attempt: Attempt, refusedWith offers: OfferList, _ now: Duration, _ memory: inout CredentialMemory
    ) {
        let spaces = offers.answerable.map { $0.protectionSpace(at: hop.url.origin) }
        // Sent on a guess by path into a part of the server that has another realm: nobody looked at the password.
        if attempt.isPreemptive && !spaces.contains(attempt.space) { return }
        target.noteRefusal(of: attempt)
        if let key = heldTurn {
            memory.refusals.note(attempt.credential, attempt.source, in: key)
        }
        guard mayUseStorage(memory) else { return }
        if memory.session.forget(attempt.credential, for: attempt.space, owner: owner, at: hop.url.origin) {
            memory.add(.changed(CredentialChange(.forgotten, attempt, in: .session)))
        }
        if attempt.source == .keyring {
            memory.keyring.noteRefusal(of: attempt.credential, in: attempt.space, now: now)
            if let item = attempt.item, !attempt.isCalledStale(by: offers) {
                memory.add(.remove(item: item, attempt.credential))
            }
        }
    }

    /// Nothing is written before the server has accepted it.
    mutating func remember(_ attempt: Attempt, _ now: Duration, _ memory: inout CredentialMemory) {
        guard mayUseStorage(memory), attempt.credential.persistence != .none, attempt.mayBeRemembered else { return }
        let wasGiven = memory.session.wasGiven(attempt.credential, for: attempt.space)
        let isNews = memory.session.remember(
            attempt.credential, for: attempt.space, owner: owner, at: hop.url, digest: attempt.challenge.digest,
            now: now)
        if isNews {
            if !wasGiven { memory.add(.changed(CredentialChange(.stored, attempt, in: .session))) }
            memory.keyring.forgetRefusals(in: attempt.space)
            memory.turns.credentialArrived(for: attempt.space, owner: owner)
        }
        // Whoever was asked may want to keep for good what the session has already; those who waited for it ask for nothing.
        guard isNews || heldTurn != nil else { return }
        if attempt.credential.persistence == .permanent, memory.keyring.mayStore(from: attempt.source, now: now) {
            memory.add(.store(attempt.credential, SpacePattern(attempt.space)))
        }
    }

    // MARK: The challenge

    func challenge(
        for question: Question, problem: Challenge.AnswerProblem?, _ memory: CredentialMemory
    ) -> Challenge? {
        guard let asked = question.asked else { return nil }
        let failureResponse = Challenge.FailureResponse(
            status: question.response.status, headers: question.response.headers)
        return Challenge(
            protectionSpace: asked.protectionSpace(at: hop.url.origin), offers: question.offers.offers,
            proposedCredential: proposedCredential(for: question), previousFailureCount: target.failures,
            persistenceAllowed: persistenceAllowed(memory),
            failureResponse: target.lastRefused == nil ? nil : failureResponse, error: problem,
            url: hop.url.text, method: hop.method)
    }

    /// What has not been tried; else what was refused last, so that a window can be filled in; else the user whom the URL
    /// names.
    private func proposedCredential(for question: Question) -> ProposedCredential? {
        if let proposed = question.proposed {
            return ProposedCredential(user: proposed.credential.user, hasPassword: true, source: proposed.source)
        }
        if let refused = target.lastRefused {
            return ProposedCredential(user: refused.credential.user, hasPassword: true, source: refused.source)
        }
        guard isAtFirstOrigin, let userInfo = plan.userInfo else { return nil }
        return ProposedCredential(user: userInfo.user, hasPassword: userInfo.password != nil, source: .url)
    }

    private func persistenceAllowed(_ memory: CredentialMemory) -> [Persistence] {
        guard mayUseStorage(memory) else { return [.none] }
        return memory.keyring.canStore ? [.none, .forSession, .permanent] : [.none, .forSession]
    }
}
