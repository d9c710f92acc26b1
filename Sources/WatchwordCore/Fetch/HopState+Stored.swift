internal import WatchwordProtocol

/// Finds credentials of the fetch, the session and the keyring that can answer a challenge.
extension HopState {
    /// Returns the fetch's own credential, or the URL's; for Negotiate also the user's Kerberos tickets, if the fetch
    /// names no user.
    func ownCandidate(
        for challenge: AnswerableChallenge, in space: ProtectionSpace, _ context: FetchContext
    ) -> Candidate? {
        let challenger = Challenger(space)
        var own = fetch.ownCredentials(at: challenger).map {
            Candidate(credential: $0.credential, source: $0.source, partition: fetch.access.partition)
        }
        if challenge == .negotiate, own.isEmpty, fetch.namedUser(at: challenger) == nil,
            allowsStorageNow(for: space, context)
        {
            let tickets = LoginCredential(form: .tickets, secret: Secret(capacity: 0) { _ in 0 })
            own.append(Candidate(credential: tickets, source: .ambient, partition: fetch.access.partition))
        }
        return own.first { isUsable($0, for: challenge, in: space, context) }
    }

    /// Returns a credential that the server has accepted in this session.
    func acceptedCandidate(
        for challenge: AnswerableChallenge, in space: ProtectionSpace, _ context: FetchContext
    ) -> Candidate? {
        let challenger = Challenger(space)
        guard allowsStorageNow(for: space, context), !isDowngrade(challenge, challenger, context) else {
            return nil
        }
        for part in fetch.access.readable {
            let known = context.session.credential(
                for: space, user: fetch.namedUser(at: challenger), owner: part, at: challenger,
                path: chain.path(at: challenger), scope: challenge.scope, now: context.now)
            guard let known, !isNarrowerStored(than: known, in: space, context) else { continue }
            var candidate = Candidate(credential: known, source: .session, partition: part)
            candidate.provenAt = context.session.provenAt(known, for: space, owner: part)
            if isUsable(candidate, for: challenge, in: space, context) { return candidate }
        }
        return nil
    }

    /// Returns a stored credential from the session or the keyring that has not been accepted yet, or whose last
    /// refusal is doubtful (`SessionEntry.isDoubted`).
    /// - Parameter isForWeaker: whether to include credentials that are withheld from this challenge because the server
    ///   has accepted a stronger scheme.
    func storedCandidate(
        for challenge: AnswerableChallenge, in space: ProtectionSpace, isForWeaker: Bool = false,
        _ context: FetchContext
    ) -> Candidate? {
        let challenger = Challenger(space)
        guard allowsStorageNow(for: space, context) else { return nil }
        let user = fetch.namedUser(at: challenger)
        let isStrongEnough = { (pattern: SpacePattern) in
            isForWeaker || !isDowngrade(challenge, challenger, context, AcceptedStrength.Reach(pattern))
        }
        // A stored credential was not necessarily meant for a challenge this weak (SEMANTICS rule 27).
        let isUnmarked = challenge.digest?.protection == .legacy || space.lacksRealm
        for part in fetch.access.readable {
            // A doubted credential was accepted in this realm, so only the schemes accepted in this realm matter.
            let isOfRealm = isForWeaker || !isDowngrade(challenge, challenger, context)
            let doubted =
                isOfRealm
                ? context.session.doubtedCredential(for: space, user: user, owner: part, now: context.now) : nil
            let staged =
                doubted
                ?? context.session.stagedCredential(
                    for: space, user: user, owner: part, path: chain.path(at: challenger), now: context.now
                ) { (isForWeaker || !isUnmarked) && isStrongEnough($0) }
            guard let staged, !isNarrowerStored(than: staged, in: space, context) else { continue }
            let candidate = Candidate(credential: staged, source: .session, partition: part)
            if isUsable(candidate, for: challenge, in: space, context) { return candidate }
        }
        guard isForWeaker || !isUnmarked else { return nil }  // guard: stored-for-a-weak-challenge
        guard
            case .credential(let credential, let item, let isExact) = keyringFinding(
                in: space, context, where: isStrongEnough),
            !isNarrowerInSession(than: credential, at: challenger, context),  // guard: keyring-wider-than-session
            !context.keyring.hasRefused(credential, in: space, now: context.now)
        else { return nil }
        let candidate = Candidate(
            // guard: keyring-removes-exact-only
            credential: credential, source: .keyring, item: isExact ? item : nil,
            partition: fetch.access.keyringPartition)
        return isUsable(candidate, for: challenge, in: space, context) ? candidate : nil
    }

    /// Returns the best match for `space` among the keyring items that were looked up.
    func keyringFinding(
        in space: ProtectionSpace, _ context: FetchContext, where matches: (SpacePattern) -> Bool
    ) -> KeyringMatch {
        let challenger = Challenger(space)
        return KeyringMatch(
            KeyringMatches(
                keyringItems(at: challenger, context) ?? [], at: challenger, path: chain.path(at: challenger),
                user: fetch.namedUser(at: challenger), time: context.session.wallTime
            ) { $0.matches(space) && matches($0) }
        ) { $0.isExact(for: space) }
    }

    /// Returns the keyring items that were looked up; `nil` before the lookup, and again after anything was forgotten.
    func keyringItems(at challenger: Challenger, _ context: FetchContext) -> [KeyringItem]? {
        self[challenger].keyringItems.flatMap { $0.mark == context.forgets.mark ? $0.items : nil }
    }
}
