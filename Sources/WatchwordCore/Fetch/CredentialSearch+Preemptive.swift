internal import WatchwordProtocol

/// What goes out before anybody has asked.
extension CredentialSearch {
    /// Before a challenge only the session cache may speak (semantics rule 16).
    func preemptiveAttempt(
        at challenger: Challenger, _ context: FetchContext
    ) -> Attempt? {
        guard intent.plan.preemption != .never else { return nil }
        var found: SessionEntry?
        for part in intent.access.readable where found == nil {
            found = context.session.preemptiveEntry(
                at: challenger, path: chain.path(at: challenger), user: intent.namedUser(at: challenger),
                owner: part, now: context.now)
        }
        guard let entry = found, situation.mightUseStorage(for: entry.space, context),
            // Where the client decides what is sent, it is asked about the challenge first.
            !situation.asksFirst(in: entry.space),
            intent.plan.methods?.contains(entry.space.authenticationMethod) ?? true,
            context.environment.schemes.allow(entry.space.authenticationMethod, at: challenger),
            !situation[challenger].hasRefused(entry.credential, in: entry.space),
            !isNarrowerStored(than: entry.credential, in: entry.space, context),
            !context.refusals.hasRefused(entry.credential, in: entry.space, since: intent.lastRefusalBefore),
            intent.agrees(with: entry.credential, at: challenger),
            entry.digest.map({ context.session.nonces.remembers($0, at: challenger) }) ?? true
        else { return nil }
        let attempt = Attempt(entry, mark: context.forgets.mark)
        guard intent.access.subject == nil || isConsented(attempt, context),
            !isDowngrade(attempt.challenge, challenger, context)
        else { return nil }
        return attempt
    }

    /// `nil` where it has to wait for a challenge: over plain http to another machine or through a proxy, after a redirect, where the server has
    /// accepted something stronger before, and for what only answers a challenge.
    func unaskedAttempt(_ context: FetchContext) -> Attempt? {
        guard intent.plan.preemption == .always, chain.redirects == 0, let credential = intent.plan.credential,
            !chain.isReadable(server)
        else {
            return nil
        }
        let challenge: AnswerableChallenge
        switch credential.form {
        // As strong as Basic in any realm.
        case .password: challenge = .basic(realm: "")
        case .token: challenge = .bearer(realm: nil)
        case .header, .tickets: return nil
        }
        var space = challenge.protectionSpace(at: server)
        space.realm = nil
        guard intent.plan.methods?.contains(space.authenticationMethod) ?? true,
            context.environment.schemes.allow(space.authenticationMethod, at: server),
            challenge.canCarry(credential, at: server), problem(with: credential, at: server, context) == nil,
            !isDowngrade(challenge, server, context, .server), !situation[server].hasRefused(credential, in: space),
            !context.refusals.hasRefused(credential, in: space, since: intent.lastRefusalBefore)
        else { return nil }
        var attempt = Attempt(
            challenge, space, Candidate(credential: credential, source: .explicit, home: intent.access.home))
        attempt.isPreemptive = true
        attempt.isUnasked = true
        attempt.mark = context.forgets.mark
        return attempt
    }
}

extension ProtectionSpace {
    /// Whether both can be one: what is sent unasked does not say for which realm.
    func mayBe(_ other: ProtectionSpace) -> Bool {
        guard realm == nil || other.realm == nil else { return self == other }
        var (one, two) = (self, other)
        (one.realm, two.realm) = (nil, nil)
        return one == two
    }
}

extension Attempt {
    /// The same for the space that the server has named by now, where it asks for this very scheme.
    func named(by offers: OfferList) -> Attempt {
        guard isUnasked, let named = offers.answerable.first(where: { $0.scheme == challenge.scheme }) else {
            return self
        }
        var attempt = self
        attempt.challenge = named
        attempt.space = named.protectionSpace(at: challenger)
        return attempt
    }

    /// Fewer than one server's share of the refusals that are remembered.
    private static let refusedRealms = 16

    /// The same for the other realms of a server that asks for this very scheme in several: it was refused for each of them.
    func inOtherRealms(of offers: OfferList) -> [Attempt] {
        guard isUnasked else { return [] }
        let others = offers.answerable.filter { offer in
            // A token that is too narrow there was not refused (semantics rule 29).
            if case .bearer(_, _, true) = offer { return false }
            return offer.scheme == challenge.scheme && offer.realm != challenge.realm
        }
        return others.prefix(Self.refusedRealms).map { other in
            var attempt = self
            attempt.challenge = other
            attempt.space = other.protectionSpace(at: challenger)
            return attempt
        }
    }
}

extension Attempt {
    /// Of what the session has, before any challenge.
    fileprivate init(_ entry: SessionEntry, mark: ForgetLog.Mark) {
        let challenge: AnswerableChallenge =
            if let digest = entry.digest {
                .digest(digest)
            } else if entry.space.authenticationMethod == .bearer {
                .bearer(realm: entry.space.realm, scope: entry.credential.scope)
            } else if entry.space.proxyType == .socks {
                .socks
            } else {
                .basic(realm: entry.space.realm)
            }
        self.init(
            challenge, entry.space, Candidate(credential: entry.credential, source: .session, home: entry.owner))
        isPreemptive = true
        provenAt = entry.provenAt
        self.mark = mark
    }
}
