internal import WatchwordProtocol

/// Builds the challenge that a respondent receives.
extension HopState {
    func challenge(
        for question: Question, at respondent: Respondent, problem: Challenge.AnswerProblem?,
        proposesCertificate: Bool, _ context: FetchContext
    ) -> Challenge? {
        guard let space = space(of: question) else { return nil }
        let challenger = Challenger(space)
        let record = self[challenger]
        let failureResponse = question.response.map {
            Challenge.FailureResponse(status: $0.status, headers: $0.headers)
        }
        var offers: [Offer] = []
        if case .login(let list, _) = question.kind { offers = list.offers }
        var challenge = Challenge(
            protectionSpace: space, offers: offers,
            proposedCredential: proposedCredential(for: question, challenger, proposesCertificate),
            previousFailureCount: record.failures,
            persistenceAllowed: persistenceAllowed(in: space, at: respondent, context),
            failureResponse: failureResponse, error: problem ?? question.problem,
            url: chain.hop.url.text, method: chain.hop.method)
        if challenge.persistenceAllowed.contains(.forSession) {
            challenge.sessionLimits = context.session.limits.times(for: space.authenticationMethod)
        }
        challenge.knownUsers = question.known.map(\.shown)
        challenge.state = question.state
        challenge.login = question.login
        challenge.isForHandler = respondent == .handler
        if let steering = steering(to: challenger) {
            challenge.exceptionalKey = steering.exceptionalKey
            challenge.namedProxy = steering.proxy?.text
        }
        challenge.isDowngrade =
            question.withholdsStored
            || question.asked.map { isDowngrade($0, challenger, context) } ?? false
        challenge.formerRealm = question.asked.flatMap {
            context.session.nonces.accepted.formerRealm(before: $0, at: challenger, path: chain.path(at: challenger))
        }
        switch question.kind {
        case .login: break
        case .serverTrust(let facts): challenge.connection = .serverTrust(facts)
        case .clientCertificate(let request):
            challenge.connection = .clientCertificate(distinguishedNames: request.distinguishedNames)
        }
        return challenge
    }

    /// Returns the credential to propose: the untried one of the question; otherwise the one refused last, to prefill a
    /// prompt; otherwise the user that the URL names.
    private func proposedCredential(
        for question: Question, _ challenger: Challenger, _ proposesCertificate: Bool
    ) -> ProposedCredential? {
        if case .clientCertificate = question.kind, proposesCertificate {
            return ProposedCredential(user: nil, hasPassword: true, source: .session)
        }
        guard case .login = question.kind else { return nil }
        if let proposed = question.proposed {
            return ProposedCredential(
                user: proposed.credential.shownUser, hasPassword: proposed.credential.form != .tickets,
                source: proposed.source)
        }
        // For another scheme or realm, only the user is proposed, since the answer `proposed` has to fit this
        // challenge.
        guard let asked = question.asked, asked.takesPassword else { return nil }
        if let refused = self[challenger].lastRefused, refused.credential.form == .password {
            return ProposedCredential(
                user: refused.credential.user, hasPassword: refused.space == asked.protectionSpace(at: challenger),
                source: refused.source)
        }
        guard fetch.matches(challenger), !challenger.isProxy, let userInfo = fetch.userInfo else { return nil }
        return ProposedCredential(user: userInfo.user, hasPassword: false, source: .url)
    }

    private func persistenceAllowed(
        in space: ProtectionSpace, at respondent: Respondent, _ context: FetchContext
    ) -> [Persistence] {
        let allowed = persistenceAllowed(in: space, context)
        let isTrust = space.authenticationMethod == .serverTrust
        let mayBePermanent =
            isTrust ? fetch.mayTrustPermanently(respondent.source) : fetch.mayStorePermanently(respondent.source)
        return mayBePermanent ? allowed : allowed.filter { $0 != .permanent }
    }

    private func persistenceAllowed(in space: ProtectionSpace, _ context: FetchContext) -> [Persistence] {
        if space.authenticationMethod == .serverTrust {
            return mayRememberTrust(context) ? [.none, .forSession, .permanent] : [.none]
        }
        guard allowsStorageNow(for: space, context) else { return [.none] }
        switch space.authenticationMethod {
        case .other, .negotiate, .serverTrust: return [.none]
        case .bearer, .clientCertificate: return [.none, .forSession]
        // A keyring item without a realm would match every realm.
        case .httpBasic where space.lacksRealm: return [.none, .forSession]  // guard: weak-basic-not-permanent
        case .httpBasic, .httpDigest, .ntlm:
            return context.keyring.canStore ? [.none, .forSession, .permanent] : [.none, .forSession]
        }
    }
}
