internal import WatchwordProtocol

/// A response that challenges, and which of its schemes somebody is asked about.
struct Question: Sendable {
    let offers: OfferList
    /// The result, should nobody want to log in.
    let response: TransferResponse
    var asked: AnswerableChallenge?

    init(offers: OfferList, response: TransferResponse) {
        self.offers = offers
        self.response = response
    }
}

extension FetchMachine {
    /// Before a challenge only the session cache may speak (semantics rule 16).
    func preemptiveAttempt(session: SessionCache, now: Duration) -> Attempt? {
        guard plan.preemptive, plan.useStorage, let entry = session.preemptiveEntry(for: hop.url, now: now),
            plan.methods?.contains(entry.space.authenticationMethod) ?? true,
            !target.hasRefused(entry.credential, in: entry.space), agreesWithFetch(entry.credential)
        else { return nil }
        let challenge: AnswerableChallenge
        if let digest = entry.digest {
            guard session.nonces.remembers(digest, at: hop.url.origin) else { return nil }
            challenge = .digest(digest)
        } else {
            challenge = .basic(realm: entry.space.realm ?? "")
        }
        return Attempt(
            challenge: challenge, space: entry.space, credential: entry.credential, source: .session, isPreemptive: true
        )
    }

    /// Whether a cached credential is what the fetch itself would send; true where the fetch names nobody.
    private func agreesWithFetch(_ cached: PasswordCredential) -> Bool {
        guard isAtFirstOrigin else { return true }
        if let own = plan.credential { return own.isSame(as: cached) }
        guard let userInfo = plan.userInfo else { return true }
        return userInfo.user == cached.user && (userInfo.password.map { $0 == cached.password } ?? true)
    }

    /// What may be tried without asking, in the order of semantics rule 15; what was refused before is not tried again.
    func candidate(for challenge: AnswerableChallenge, session: SessionCache, now: Duration) -> Attempt? {
        let space = challenge.protectionSpace(at: hop.url.origin)
        let found = candidates(for: space, session: session, now: now).first { candidate in
            challenge.canCarry(candidate.credential) && !target.hasRefused(candidate.credential, in: space)
        }
        return found.map {
            Attempt(challenge: challenge, space: space, credential: $0.credential, source: $0.source)
        }
    }

    private func candidates(
        for space: ProtectionSpace, session: SessionCache, now: Duration
    ) -> [(credential: PasswordCredential, source: CredentialSource)] {
        var result: [(PasswordCredential, CredentialSource)] = []
        if isAtFirstOrigin {
            if let own = plan.credential { result.append((own, .explicit)) }
            if let userInfo = plan.userInfo, let password = userInfo.password {
                result.append((PasswordCredential(user: userInfo.user, password: password), .url))
            }
        }
        if plan.useStorage, let cached = session.credential(for: space, at: hop.url.origin, now: now),
            isAboutSameUser(cached)
        {
            result.append((cached, .session))
        }
        return result
    }

    /// A fetch that names a user is never made as another one.
    private func isAboutSameUser(_ cached: PasswordCredential) -> Bool {
        guard isAtFirstOrigin, let named = plan.credential?.user ?? plan.userInfo?.user else { return true }
        return named == cached.user
    }

    /// What came with the fetch is for the origin that it was given for (semantics rule 23).
    private var isAtFirstOrigin: Bool { hop.url.origin == plan.url.origin }

    func challenge(for question: Question, problem: Challenge.AnswerProblem?) -> Challenge? {
        guard let asked = question.asked else { return nil }
        let failureResponse = Challenge.FailureResponse(
            status: question.response.status, headers: question.response.headers)
        return Challenge(
            protectionSpace: asked.protectionSpace(at: hop.url.origin), offers: question.offers.offers,
            proposedCredential: proposedCredential, previousFailureCount: target.failures,
            failureResponse: target.lastRefused == nil ? nil : failureResponse, error: problem,
            url: hop.url.text, method: hop.method)
    }

    /// What was refused last, so that a window can be filled in; else the user whom the URL names.
    private var proposedCredential: ProposedCredential? {
        if let refused = target.lastRefused {
            return ProposedCredential(user: refused.credential.user, hasPassword: true, source: refused.source)
        }
        guard isAtFirstOrigin, let userInfo = plan.userInfo else { return nil }
        return ProposedCredential(user: userInfo.user, hasPassword: userInfo.password != nil, source: .url)
    }
}

extension Attempt {
    /// The same credential once more, when only the nonce was too old (RFC 7616 section 3.3, `stale`). `nil` when that was
    /// so before: a server that says it for ever is not believed.
    func retry(_ offers: OfferList) -> Attempt? {
        guard case .digest = challenge, staleAnswers + 1 < Limits.staleNonces else { return nil }
        let fresh = offers.answerable.first { offer in
            guard case .digest(let digest) = offer else { return false }
            return digest.isStale && digest.realm == challenge.realm && digest.nonce != self.challenge.digest?.nonce
        }
        guard let fresh else { return nil }
        var retry = self
        retry.challenge = fresh
        retry.staleAnswers += 1
        return retry
    }

    /// The value of the `Authorization` field.
    func authorization(
        for hop: HopRequest, _ environment: FetchEnvironment, nonces: inout DigestNonces
    ) -> Secret {
        switch challenge {
        case .basic:
            return BasicScheme.authorization(for: credential)
        case .digest(let digest):
            let response = nonces.nextResponse(
                to: digest, at: hop.url.origin, clientNonce: environment.makeClientNonce())
            return response.authorization(
                for: credential, method: hop.method, requestTarget: hop.url.requestTarget)
        }
    }

    /// What travels readable is remembered only where somebody has seen that it does (semantics rule 25): a credential that
    /// came with the fetch was never shown a challenge.
    var mayBeRemembered: Bool {
        space.receivesCredentialSecurely || space.isLoopback || source == .client || source == .session
    }

    var authentication: FetchRunResult.Authentication {
        .init(method: space.authenticationMethod, source: source, user: credential.user)
    }
}

extension ProtectionSpace {
    /// Never leaves the machine (RFC 6761 section 6.3, RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3).
    fileprivate var isLoopback: Bool {
        host == "localhost" || host.hasSuffix(".localhost") || host == "[::1]"
            || (host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) })
    }
}

extension AnswerableChallenge {
    var digest: DigestChallenge? {
        if case .digest(let challenge) = self { challenge } else { nil }
    }

    func canCarry(_ credential: PasswordCredential) -> Bool {
        switch self {
        case .basic: BasicScheme.canCarry(credential)
        case .digest: true
        }
    }
}

extension TransferResponse {
    /// Whether the credential that was sent can be taken for right: a server in trouble has not looked at it.
    var showsAcceptance: Bool { status != 401 && status != 407 && status < 500 }
}

extension FetchFailure {
    init(_ failure: TransferFailure) {
        let kind: ErrorKind =
            switch failure.kind {
            case .nameNotResolved: .nameNotResolved
            case .cannotConnect: .cannotConnect
            case .timedOut: .timedOut
            case .connectionLost: .connectionLost
            case .serverNotTrusted: .serverNotTrusted
            case .tlsFailed: .tlsFailed
            case .bodyTooLarge, .headersTooLarge: .tooLarge
            case .malformedResponse: .malformedResponse
            case .cancelled: .cancelled
            case .outOfMemory, .internalError: .internalError
            }
        self.init(kind, failure.detail)
    }
}
