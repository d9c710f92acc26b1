internal import WatchwordProtocol

/// Logins that are sent before a challenge.
extension HopState {
    /// Whether the path that the server finds is certain, so that a login can be sent unasked.
    private func isUnambiguous(at challenger: Challenger) -> Bool {  // guard: unasked-ambiguous-path
        challenger.isProxy || !chain.hop.url.isAmbiguous
    }

    /// Returns the login from the session cache to send before a challenge, if any. No other store supplies one
    /// (SEMANTICS rule 16).
    func preemptiveAttempt(
        at challenger: Challenger, _ context: FetchContext
    ) -> Attempt? {
        guard fetch.preemption != .never, challenger.isProxy || fetch.originLogin == .broker,
            isUnambiguous(at: challenger)
        else { return nil }
        var found: AcceptedLogin?
        for part in fetch.access.readable where found == nil {
            found = context.session.preemptiveEntry(
                at: challenger, path: chain.path(at: challenger), user: fetch.namedUser(at: challenger),
                owner: part, now: context.now)
        }
        guard let entry = found,
            !self[challenger].withheld.contains(where: { $0.credential.isSame(as: entry.credential) })
        else { return nil }
        let (space, credential) = (entry.space, entry.credential)
        guard allowsStorage(for: space, context),
            // A client or handler in the mode `everything` receives the challenge first.
            !asksFirst(in: space),
            fetch.methods(at: challenger)?.contains(space.authenticationMethod) ?? true,
            context.environment.rules.schemes.allow(space.authenticationMethod, at: challenger),
            !self[challenger].hasRefused(credential, in: space),
            !isNarrowerStored(than: credential, in: space, context),
            !context.refusals.hasRefused(
                credential, in: space, steering(to: challenger), since: fetch.refusalBaseline),
            fetch.agrees(with: credential, at: challenger),  // guard: preemptive-agrees-with-fetch
            entry.digest.map({ context.session.nonces.remembers($0, at: challenger) }) ?? true
        else { return nil }
        let attempt = Attempt(entry, mark: context.forgets.mark)
        guard fetch.access.subject == nil || isConsented(attempt, context),
            !isDowngrade(attempt.challenge, challenger, context)  // guard: preemptive-downgrade
        else { return nil }
        return attempt
    }

    /// Returns the login of the session that is not sent unasked for this path, because the server has answered it there
    /// without a challenge; `nil` if there is none, or the fetch may not use it.
    func withheldAttempt(at challenger: Challenger, _ context: FetchContext) -> Attempt? {
        guard fetch.preemption != .never, challenger.isProxy || fetch.originLogin == .broker,
            isUnambiguous(at: challenger)
        else { return nil }
        let entry = fetch.access.readable.lazy.compactMap { part in
            context.session.withheldEntry(
                at: challenger, path: chain.path(at: challenger), user: fetch.namedUser(at: challenger), owner: part,
                now: context.now)
        }.first
        guard let entry, allowsStorageNow(for: entry.space, context),
            fetch.agrees(with: entry.credential, at: challenger)
        else { return nil }
        let attempt = Attempt(entry, mark: context.forgets.mark)
        return isConsented(attempt, context) ? attempt : nil
    }

    /// Returns an attempt to send the fetch's own credential before any challenge (`"always"` in SEMANTICS rule 16).
    /// Returns `nil` if the credential must not be sent unasked: over http that can be read on the network, after a
    /// redirect, if the server has accepted a stronger scheme, and in a form that can only answer a challenge.
    func unaskedAttempt(_ context: FetchContext) -> Attempt? {
        // guard: unasked-after-a-redirect
        guard fetch.preemption == .always, chain.redirects == 0, let credential = fetch.credential,
            isUnambiguous(at: server), !chain.isReadable(server)  // guard: unasked-over-http
        else {
            return nil
        }
        let challenge: AnswerableChallenge
        switch credential.form {
        // The empty realm stands for any realm; the strength is that of Basic.
        case .password: challenge = .basic(realm: "")
        case .token: challenge = .bearer(realm: nil)
        case .header, .tickets: return nil
        }
        var space = challenge.protectionSpace(at: server)
        space.realm = nil
        guard fetch.methods?.contains(space.authenticationMethod) ?? true,
            context.environment.rules.schemes.allow(space.authenticationMethod, at: server),
            challenge.canCarry(credential, at: server), problem(with: credential, at: server, context) == nil,
            // guard: unasked-and-weaker
            !isDowngrade(challenge, server, context, .server), !self[server].hasRefused(credential, in: space),
            !self[server].withheld.contains(where: { $0.credential.isSame(as: credential) }),
            !context.refusals.hasRefused(credential, in: space, steering(to: server), since: fetch.refusalBaseline)
        else { return nil }
        var attempt = Attempt(
            challenge, space, Candidate(credential: credential, source: .explicit, partition: fetch.access.partition))
        attempt.isPreemptive = true
        attempt.isUnasked = true
        attempt.begin(at: context.forgets.mark)
        return attempt
    }
}

extension ProtectionSpace {
    /// Whether both may be the same space. A space without a realm, as that of a credential sent before a challenge,
    /// matches every realm.
    func mayBe(_ other: ProtectionSpace) -> Bool {
        guard realm == nil || other.realm == nil else { return self == other }
        var (one, two) = (self, other)
        (one.realm, two.realm) = (nil, nil)
        return one == two
    }
}

extension Attempt {
    /// Returns this attempt for the space of the challenge that has now arrived, if that offers the same scheme;
    /// otherwise the attempt unchanged.
    func named(by offers: OfferList) -> Attempt {
        guard isUnasked, let named = offers.answerable.first(where: { $0.scheme == challenge.scheme }) else {
            return self
        }
        var attempt = self
        attempt.challenge = named
        attempt.space = named.protectionSpace(at: challenger)
        return attempt
    }

    /// The maximum number of other realms in which a refusal is recorded; less than one server's share of the refusal
    /// log.
    private static let refusedRealms = 16

    /// Returns this attempt for each other realm in which the server offers the same scheme: the credential was refused
    /// in all of them.
    func inOtherRealms(of offers: OfferList) -> [Attempt] {
        guard isUnasked else { return [] }
        let others = offers.answerable.filter { offer in
            // Insufficient scope is not a refusal (SEMANTICS rule 29).
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
    /// Creates an attempt from a session entry, before any challenge.
    fileprivate init(_ entry: AcceptedLogin, mark: ForgetLog.Mark) {
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
        var candidate = Candidate(credential: entry.credential, source: .session, partition: entry.owner)
        (candidate.provenAt, candidate.mark) = (entry.provenAt, mark)
        self.init(challenge, entry.value.$space, candidate)
        isPreemptive = true
    }
}
