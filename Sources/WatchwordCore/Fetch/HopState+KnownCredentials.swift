internal import WatchwordProtocol

/// A stored credential that a respondent may choose by its id.
struct KnownCredential: Sendable, Equatable {
    let id: CredentialID
    var candidate: Candidate

    /// The description in the challenge, without the secret.
    var shown: KnownUser {
        KnownUser(
            id: id, user: candidate.credential.user, domain: candidate.credential.account.domain,
            source: candidate.source)
    }
}

/// Several stored credentials that fit one challenge (SEMANTICS rule 18).
extension HopState {
    /// Returns the stored credentials that the respondent may choose from. Empty if the proposed credential is the only
    /// one, or if the fetch may not use stored credentials.
    func knownCredentials(
        for question: Question, _ asked: AnswerableChallenge, in space: ProtectionSpace, _ context: FetchContext
    ) -> [KnownCredential] {
        let challenger = Challenger(space)
        guard allowsStorageNow(for: space, context), !isDowngrade(asked, challenger, context) else {
            return []
        }
        var known: [KnownCredential] = []
        let isStrongEnough = { (pattern: SpacePattern) in
            !isDowngrade(asked, challenger, context, AcceptedStrength.Reach(pattern))
        }
        let choices =
            sessionChoices(space, challenger, context, where: isStrongEnough)
            + keyringChoices(space, challenger, context, where: isStrongEnough)
        for one in choices {
            // A keyring item with a copy in the session is listed once, as a session credential.
            let isThere = known.contains { $0.candidate.credential.account == one.candidate.credential.account }
            guard !isThere, one.candidate.credential.form == .password,
                isUsable(one.candidate, for: asked, in: space, context),
                isConsented(one.candidate, in: space, context)  // guard: known-users-consent
            else { continue }
            known.append(one)
        }
        if let proposed = question.proposed,
            known.allSatisfy({ $0.candidate.credential.isSame(as: proposed.credential) })
        {
            return []
        }
        return Array(known.prefix(Limits.knownUsers))
    }

    private func sessionChoices(
        _ space: ProtectionSpace, _ challenger: Challenger, _ context: FetchContext,
        where matches: (SpacePattern) -> Bool
    ) -> [KnownCredential] {
        fetch.access.readable.flatMap { part in
            let choices = context.session.choices(
                for: space, user: fetch.namedUser(at: challenger), owner: part, at: challenger,
                path: chain.path(at: challenger),
                now: context.now, where: matches)
            return choices.map { number, credential in
                KnownCredential(
                    id: .session(number),
                    candidate: Candidate(credential: credential, source: .session, partition: part))
            }
        }
    }

    private func keyringChoices(
        _ space: ProtectionSpace, _ challenger: Challenger, _ context: FetchContext,
        where matches: (SpacePattern) -> Bool
    ) -> [KnownCredential] {
        let matches = KeyringMatches(
            keyringItems(at: challenger, context) ?? [], at: challenger, path: chain.path(at: challenger),
            user: fetch.namedUser(at: challenger), time: context.session.wallTime
        ) { $0.matches(space) && matches($0) }
        return matches.best.compactMap { stored in
            guard let credential = stored.credential,
                !context.keyring.hasRefused(credential, in: space, now: context.now)
            else { return nil }
            let candidate = Candidate(
                credential: credential, source: .keyring, item: stored.isExact(for: space) ? stored.item.id : nil,
                partition: fetch.access.keyringPartition)
            return KnownCredential(id: .keyring(stored.item.id), candidate: candidate)
        }
    }
}
