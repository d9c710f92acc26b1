internal import WatchwordProtocol

/// The request's own credential with its first request, where the client wants that (`Preemption.always`).
extension FetchMachine {
    /// `nil` where it has to wait for a challenge: over plain http to another machine or through a proxy, after a redirect, where the server has
    /// accepted something stronger before, and for what only answers a challenge.
    func unaskedAttempt(_ context: FetchContext) -> Attempt? {
        guard plan.preemption == .always, redirects == 0, let credential = plan.credential, !isReadable(server) else {
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
        guard plan.methods?.contains(space.authenticationMethod) ?? true,
            context.environment.schemes.allow(space.authenticationMethod, at: server),
            challenge.canCarry(credential, at: server), problem(with: credential, at: server, context) == nil,
            !isDowngrade(challenge, server, context, .server), !target(server).hasRefused(credential, in: space),
            !context.refusals.hasRefused(credential, in: space, since: lastRefusalBefore)
        else { return nil }
        var attempt = Attempt(
            challenge, space, Candidate(credential: credential, source: .explicit, home: access.home))
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
}
