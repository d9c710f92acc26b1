internal import WatchwordProtocol

/// What can answer a challenge: what came with the fetch, what the session has, what the keyring has.
extension CredentialSearch {
    /// What came with the fetch: its own credential, then the URL's; and the tickets of the user, where nobody else is named.
    func ownCandidate(
        for challenge: AnswerableChallenge, in space: ProtectionSpace, _ context: FetchContext
    ) -> Candidate? {
        let challenger = Challenger(space)
        var own = intent.ownCredentials(at: challenger).map {
            Candidate(credential: $0.credential, source: $0.source, home: intent.access.home)
        }
        if challenge == .negotiate, own.isEmpty, intent.namedUser(at: challenger) == nil,
            situation.mayUseStorage(for: space, context)
        {
            let tickets = LoginCredential(form: .tickets, secret: Secret(capacity: 0) { _ in 0 })
            own.append(Candidate(credential: tickets, source: .ambient, home: intent.access.home))
        }
        return own.first { isUsable($0, for: challenge, in: space, context) }
    }

    /// What a server has accepted in this session.
    func acceptedCandidate(
        for challenge: AnswerableChallenge, in space: ProtectionSpace, _ context: FetchContext
    ) -> Candidate? {
        let challenger = Challenger(space)
        guard situation.mayUseStorage(for: space, context), !isDowngrade(challenge, challenger, context) else {
            return nil
        }
        for part in intent.access.readable {
            let known = context.session.credential(
                for: space, user: intent.namedUser(at: challenger), owner: part, at: challenger,
                path: chain.path(at: challenger), scope: challenge.scope, now: context.now)
            guard let known, !isNarrowerStored(than: known, in: space, context) else { continue }
            var candidate = Candidate(credential: known, source: .session, home: part)
            candidate.provenAt = context.session.provenAt(known, for: space, owner: part)
            if isUsable(candidate, for: challenge, in: space, context) { return candidate }
        }
        return nil
    }

    /// What is stored, and has not been accepted yet: in the session, or in the keyring.
    /// - Parameter isForWeaker: whether what is not for this challenge, because the server has done better, counts as well.
    func storedCandidate(
        for challenge: AnswerableChallenge, in space: ProtectionSpace, isForWeaker: Bool = false,
        _ context: FetchContext
    ) -> Candidate? {
        let challenger = Challenger(space)
        guard situation.mayUseStorage(for: space, context) else { return nil }
        let user = intent.namedUser(at: challenger)
        let isStrongEnough = { (pattern: SpacePattern) in
            isForWeaker || !isDowngrade(challenge, challenger, context, AcceptedStrength.Reach(pattern))
        }
        // Nothing says that what is stored was for a scheme as weak as this: rule 27.
        let isUnmarked = challenge.digest?.protection == .legacy || space.lacksRealm
        for part in intent.access.readable {
            // A doubted one was accepted in this very realm.
            let isOfRealm = isForWeaker || !isDowngrade(challenge, challenger, context)
            let doubted =
                isOfRealm
                ? context.session.doubtedCredential(for: space, user: user, owner: part, now: context.now) : nil
            let given =
                doubted
                ?? context.session.givenCredential(
                    for: space, user: user, owner: part, path: chain.path(at: challenger), now: context.now
                ) { (isForWeaker || !isUnmarked) && isStrongEnough($0) }
            guard let given, !isNarrowerStored(than: given, in: space, context) else { continue }
            let candidate = Candidate(credential: given, source: .session, home: part)
            if isUsable(candidate, for: challenge, in: space, context) { return candidate }
        }
        guard isForWeaker || !isUnmarked else { return nil }
        guard
            case .credential(let credential, let item, let isExact) = keyringFinding(
                in: space, context, where: isStrongEnough),
            !context.keyring.hasRefused(credential, in: space, now: context.now)
        else { return nil }
        let candidate = Candidate(
            credential: credential, source: .keyring, item: isExact ? item : nil, home: intent.access.homeOfKeyring)
        return isUsable(candidate, for: challenge, in: space, context) ? candidate : nil
    }

    /// What the items of the keyring, as far as they were looked up, come to for `space`.
    func keyringFinding(
        in space: ProtectionSpace, _ context: FetchContext, where isMeant: (SpacePattern) -> Bool
    ) -> KeyringFinding {
        let challenger = Challenger(space)
        return KeyringFinding(
            KeyringMatches(
                keyringItems(at: challenger, context) ?? [], at: challenger, path: chain.path(at: challenger),
                user: intent.namedUser(at: challenger), time: context.session.wallTime
            ) { $0.matches(space) && isMeant($0) }
        ) { $0.isExact(for: space) }
    }

    /// `nil` before they were looked up, and when something was forgotten since then.
    func keyringItems(at challenger: Challenger, _ context: FetchContext) -> [KeyringItem]? {
        situation[challenger].keyringItems.flatMap { $0.mark == context.forgets.mark ? $0.items : nil }
    }
}
