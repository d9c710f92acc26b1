internal import WatchwordProtocol

/// A login that was answered with 401, or by a proxy with 407, but without a challenge (SEMANTICS rule 1). This refuses
/// no login: applications use these statuses for reasons of their own.
extension LoginResolution {
    /// Returns the step after such a response to a login that was sent unasked: the token is renewed, if the
    /// configuration says how, or else the request is sent once without the login. Returns `nil` if the response is the
    /// result.
    mutating func repeatWithoutChallenge(
        _ response: TransferResponse, at side: Side, _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution? {
        guard response.refusesWithoutChallenge(side), let challenger = hop.chain.challenger(at: side)
        else { return nil }
        guard let attempt = outgoing[side] else {
            return hop.withheldAttempt(at: challenger, context).flatMap { renew($0, &hop, &context) }
        }
        guard attempt.isPreemptive else {
            // The login was already sent unasked here, and the server has demanded it: now somebody may be asked.
            guard let question = withheldQuestion, case .login(_, side) = question.kind else {
                // Another question would get the same response. A handler answers for its own fetch only.
                if [.client, .agent].contains(attempt.source), hop.fetch.handler == nil {
                    // guard: no-challenge-ends-those-that-wait
                    hop.leases.release(.proceed, LeaseSlot(attempt.space), &context)
                }
                return nil
            }
            guard hop.beginRound() else { return .fail(.tooManyRounds(at: challenger)) }
            outgoing[side] = nil
            context.endAttempt(by: hop.fetch.id, in: attempt.space)
            withheldQuestion = nil
            hop[challenger].recordRefusal(of: attempt)
            return choose(question, &hop, &context)
        }
        guard hop.beginRound() else { return .fail(.tooManyRounds(at: challenger)) }
        outgoing[side] = nil
        hop[challenger].withheld.append(attempt)
        withhold(attempt, hop, &context)
        return renew(attempt, &hop, &context) ?? .send
    }

    /// Ends an attempt with a login that was sent unasked and is not wanted at this path: until it is accepted here, it is
    /// sent only in answer to a challenge. Those that wait to send it choose again.
    func withhold(_ attempt: Attempt, _ hop: HopState, _ context: inout FetchContext) {
        if attempt.source == .session {
            context.session.withhold(
                attempt.credential, for: attempt.space, owner: attempt.partition,
                at: hop.chain.path(at: attempt.challenger))
        }
        context.endAttempt(by: hop.fetch.id, in: attempt.space, .refused)
    }

    // MARK: Renewal

    /// Obtains a token in place of one that was sent unasked, without a person. Returns `nil` if the configuration does
    /// not say how, or this was tried in this fetch.
    private mutating func renew(_ attempt: Attempt, _ hop: inout HopState, _ context: inout FetchContext) -> Resolution?
    {
        let challenger = attempt.challenger
        guard attempt.source == .session, attempt.credential.form == .token,
            !hop[challenger].tokens.hasRenewed,
            let rule = hop.tokenRule(for: attempt.challenge, in: attempt.space, context),
            // Only a challenge names a token service.
            rule.flow != .registry, isTokenConsented(in: attempt.space, hop, context)
        else { return nil }
        hop[challenger].tokens.hasRenewed = true
        var challenge = BearerParameters()
        challenge.scopes = attempt.credential.scope.map(\.names) ?? []
        let query = tokenQuery(
            rule, challenge, in: attempt.space, needsLogin: false, mayAsk: false, since: context.now, hop, context)
        var question = Question(.login(OfferList(of: challenger), .server), .failure(.unexpectedEvent))
        question.ask(attempt.challenge)
        question.isRenewal = true
        return .obtainToken(question, query)
    }

    /// Sends the request with the token that was obtained in place of the previous one; if there is none, without a
    /// login.
    mutating func finishRenewal(_ question: Question, _ hop: inout HopState, _ context: inout FetchContext)
        -> Resolution
    {
        guard let asked = question.asked else { return .fail(.unexpectedEvent) }
        let challenger = hop.challenger(of: question)
        let space = asked.protectionSpace(at: challenger)
        guard case .token(let credential)? = hop[challenger].tokens.outcome else {
            hop[challenger].tokens.outcome = nil
            return .send
        }
        let candidate = Candidate(
            credential: credential, source: .keyring, partition: hop.fetch.access.keyringPartition)
        guard hop.isUsable(candidate, for: asked, in: space, context) else { return .send }
        var attempt = Attempt(asked, space, candidate)
        attempt.isPreemptive = true
        attempt.begin(at: context.forgets.mark)
        outgoing.server = attempt
        return .send
    }

    // MARK: Challenges and results

    /// Counts the logins that were sent unasked and answered without a challenge as failures, because the server has
    /// now demanded a login in their space: it would answer the same bytes in the same way.
    mutating func recordWithheld(_ offers: OfferList, _ hop: inout HopState) {
        let challenger = offers.challenger
        let spaces = offers.answerable.map { $0.protectionSpace(at: challenger) }
        for attempt in hop[challenger].withheld.map({ $0.named(by: offers) })
        // With another nonce, the bytes differ.
        where spaces.contains(attempt.space) && attempt.challenge.digest == nil
            && !hop[challenger].hasRefused(attempt.credential, in: attempt.space)
        {
            hop[challenger].recordRefusal(of: attempt, andOf: attempt.inOtherRealms(of: offers))
        }
    }

    /// Returns why a response without a challenge is the result although there is a login; `nil` if there is none.
    func unanswered(withoutChallenge response: TransferResponse, _ hop: HopState, _ context: FetchContext)
        -> Unanswered?
    {
        for side in Side.allCases where response.refusesWithoutChallenge(side) {
            guard let challenger = hop.chain.challenger(at: side),
                let attempt = outgoing[side] ?? hop[challenger].withheld.last
                    ?? hop.withheldAttempt(at: challenger, context)
            else { continue }
            let scheme = Unanswered.Scheme(attempt.schemeName, .noChallenge)
            return Unanswered(schemes: [scheme], cause: nil, isOfProxy: side == .proxy)
        }
        return nil
    }
}

extension TransferResponse {
    /// Whether this is a 401 of the server, or a 407 of the proxy in use, without a challenge.
    fileprivate func refusesWithoutChallenge(_ side: Side) -> Bool {
        side == .server
            ? status == 401 && headers.values(of: "WWW-Authenticate").isEmpty
            : status == 407 && isFromProxy && headers.values(of: "Proxy-Authenticate").isEmpty
    }
}

extension Attempt {
    /// The name of the scheme, as a server would write it.
    fileprivate var schemeName: String {
        switch challenge {
        case .basic, .socks: "Basic"
        case .digest: "Digest"
        case .bearer: "Bearer"
        case .ntlm: "NTLM"
        case .negotiate: "Negotiate"
        case .other(let challenge): challenge.scheme
        }
    }
}
