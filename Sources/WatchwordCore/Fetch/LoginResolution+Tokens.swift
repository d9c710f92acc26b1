internal import WatchwordProtocol

/// Obtains tokens for challenges of `Bearer`, where the configuration says how.
extension LoginResolution {
    /// Returns the step that obtains a token, uses it, or asks a person to log in; `nil` if the configuration has no rule for
    /// this URL.
    mutating func obtainToken(
        for asked: AnswerableChallenge, in space: ProtectionSpace, _ question: Question, from respondent: Respondent?,
        _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution? {
        guard case .login(let offers, _) = question.kind, let rule = hop.tokenRule(for: asked, in: space, context)
        else { return nil }
        let known = hop[offers.challenger].tokens
        var needsLogin = false
        switch known.outcome {
        case .token(let credential)?:
            let candidate = Candidate(
                credential: credential, source: .keyring, partition: hop.fetch.access.keyringPartition)
            if hop.isUsable(candidate, for: asked, in: space, context) {
                return attempt(candidate, for: asked, in: space, question, &hop, &context)
            }
            // A registry gives anyone a token, but a person may do more.
            needsLogin =
                rule.flow == .registry || hop[offers.challenger].hasRefused(credential, in: space)
        case .login(let login)?:
            guard let respondent else { return .endUnanswered(question) }
            // A sandboxed program could log in with an account of its own, which others would then use.
            if hop.fetch.access.subject?.isSandboxed == true, respondent != .agents { return nil }
            var question = question
            question.login = login
            hop[offers.challenger].tokens.consentEpoch = context.consents.epoch
            return .ask(question, respondent, nil)
        case .needsConsent?:
            let use = ConsentBook.Use(space: space, user: nil)
            guard !hop.consent.isRefused(use) else { return nil }
            if let step = hop.confirm(use, of: .keyring, question, &context) { return step }
        case .nothing?: return .endUnanswered(question)
        case .failed(let failure)?: return .fail(failure)
        case nil: break
        }
        let offer = offers.offers.first {
            $0.authenticationMethod == .bearer && $0.realm == asked.realm
                && BearerScope($0.params["scope"]) == asked.scope
        }
        let hasLoggedInInVain = known.hasLoggedIn && needsLogin
        let query = tokenQuery(
            rule, BearerParameters(offer?.params ?? [:], realm: asked.realm), in: space, needsLogin: needsLogin,
            mayAsk: respondent != nil && !hasLoggedInInVain, since: question.since, hop, context)
        // A new token would be refused for the same reason.
        // guard: oauth-once-for-each-purpose
        guard hop[offers.challenger].tokens.begin(query) else { return .endUnanswered(question) }
        return .obtainToken(question, query)
    }

    /// Returns the query for a token for this fetch.
    func tokenQuery(
        _ rule: OAuthRule, _ challenge: BearerParameters, in space: ProtectionSpace, needsLogin: Bool, mayAsk: Bool,
        since: Duration, _ hop: HopState, _ context: FetchContext
    ) -> TokenQuery {
        var query = TokenQuery(
            rule: rule, url: hop.chain.hop.url, challenge: challenge, needsLogin: needsLogin,
            isConsented: isTokenConsented(in: space, hop, context), mayAsk: mayAsk)
        // A login of one program, or a password of one client, must not serve another that consent or sharing keeps apart. A
        // stored login serves all that have consent.
        if rule.flow == .registry || hop.fetch.access.subject == nil || !query.isConsented {
            query.audience = hop.fetch.access.sharingPartition
        }
        query.since = since
        query.owner = hop.fetch.access.owner  // guard: oauth-owner-of-a-login
        query.excludedPaths = context.environment.rules.tokens.innerPaths(of: rule)
        return query
    }

    /// Whether a token with a wider scope can be obtained. Without a rule, 403 is a response like any other.
    func canWiden(_ offers: OfferList, _ hop: HopState, _ context: FetchContext) -> Bool {
        guard let attempt = outgoing.server, let wanted = attempt.tooNarrow(offers) else { return false }
        return hop.tokenRule(for: wanted, in: attempt.space, context) != nil
    }

    /// Whether this program may use a stored login of this space.
    func isTokenConsented(in space: ProtectionSpace, _ hop: HopState, _ context: FetchContext) -> Bool {
        hop.fetch.access.subject == nil
            || hop.consent.isConsented(ConsentBook.Use(space: space, user: nil), context)
    }

    /// Records that a person has logged in for this program, so that it may use the login until the session ends.
    mutating func recordConsent(of question: Question, _ hop: inout HopState, _ context: inout FetchContext) {
        guard let asked = question.asked, case .login(let offers, _) = question.kind, hop.fetch.access.subject != nil
        else { return }
        let use = ConsentBook.Use(space: asked.protectionSpace(at: offers.challenger), user: nil)
        let epoch = hop[offers.challenger].tokens.consentEpoch ?? context.consents.epoch
        hop.consent.record(.session, to: use, epoch: epoch, &context)
    }

    /// Records the outcome of `obtainToken`.
    mutating func record(_ outcome: TokenOutcome, for question: Question, _ hop: inout HopState) {
        hop[hop.challenger(of: question)].tokens.outcome = outcome
    }

    /// Records the token of a login that a person has made for this fetch.
    mutating func recordLogin(_ token: LoginCredential, _ question: Question, _ hop: inout HopState) {
        record(.token(token), for: question, &hop)
        hop[hop.challenger(of: question)].tokens.hasLoggedIn = true
    }

    /// Records that the question about a login was answered, so that the login is over.
    mutating func recordLogin(_ question: Question, _ hop: inout HopState) {
        if question.login != nil { hop[hop.challenger(of: question)].tokens.outcome = nil }
    }
}
