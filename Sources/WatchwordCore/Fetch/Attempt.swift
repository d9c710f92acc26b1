internal import WatchwordProtocol

/// One try with one credential in one protection space.
struct Attempt: Sendable, Equatable {
    var challenge: AnswerableChallenge
    var space: ProtectionSpace
    var credential: LoginCredential
    var source: CredentialSource
    /// The item of the keyring that the credential came from, if it was stored for exactly this space.
    var item: String?
    /// In whose part of the session it is, or is going to be.
    var home: Partition?
    /// Sent before this fetch was challenged.
    var isPreemptive = false
    /// Sent before anybody has said in which realm it is good.
    var isUnasked = false
    /// How many answers in a row said that only the nonce was too old.
    var staleAnswers = 0
    /// What the server's proof will be about, where the last request said it in Digest.
    var digestExchange: DigestExchange?
    /// Of the connection that challenged: what a ticket is bound to.
    var serverEndPoint: [UInt8]?
    /// The server has taken it in this fetch.
    var isAccepted = false
    /// See `Candidate.provenAt`.
    var provenAt: Duration?
    /// See `Candidate.mark`.
    var mark: ForgetLog.Mark?
    /// See `Candidate.respondent`.
    var respondent: Respondent?
    /// How often it was bound to another certificate.
    var rebindings = 0
    /// Its use is in the account.
    var isNoted = false

    init(_ challenge: AnswerableChallenge, _ space: ProtectionSpace, _ candidate: Candidate) {
        self.challenge = challenge
        self.space = space
        credential = candidate.credential
        source = candidate.source
        item = candidate.item
        home = candidate.home
        provenAt = candidate.provenAt
        mark = candidate.mark
        respondent = candidate.respondent
    }

    /// Whether other fetches may send it at the same time (semantics rule 22).
    func isProven(now: Duration) -> Bool { provenAt.map { now - $0 < Limits.acceptanceAge } ?? false }

    var challenger: Challenger { Challenger(space) }

    /// The same credential once more, when only the nonce was too old (RFC 7616 section 3.3, `stale`). `nil` when that was
    /// so too often: a server that says it for ever is not believed, nor one that asks for a weaker scheme with it.
    func retry(_ offers: OfferList) -> Attempt? {
        guard case .digest(let used) = challenge, staleAnswers < Limits.staleNonces else { return nil }
        let fresh = offers.answerable.first { offer in
            guard case .digest(let digest) = offer else { return false }
            return digest.isStale && digest.realm == challenge.realm && digest.nonce != used.nonce
                && offer.strength >= challenge.strength
                && offer.canCarry(credential, at: challenger)
        }
        guard let fresh else { return nil }
        var retry = self
        retry.challenge = fresh
        retry.staleAnswers += 1
        return retry
    }

    /// The next round of a scheme that only the client knows: what the server says now is not what it said before.
    func continuation(_ offers: OfferList) -> AnswerableChallenge? {
        guard case .header(_, _) = credential.form, case .other(let used) = challenge else { return nil }
        return offers.answerable.first { offer in
            guard case .other(let next) = offer else { return false }
            return offer.scheme == challenge.scheme && !next.raw.utf8.elementsEqual(used.raw.utf8)
        }
    }

    /// What the token that was sent is not good for, where that is all that the server finds wrong (RFC 6750 section 3.1).
    func tooNarrow(_ offers: OfferList) -> AnswerableChallenge? {
        offers.answerable.first { offer in
            guard case .bearer = challenge, case .bearer(let realm, _, true) = offer else { return false }
            return realm == challenge.realm
        }
    }

    /// The server found fault with the nonce, and has said nothing about the password.
    func isCalledStale(by offers: OfferList) -> Bool {
        offers.answerable.contains { $0.digest?.isStale == true && $0.realm == challenge.realm }
    }

    /// What travels readable is remembered only where somebody has seen that it does (semantics rule 25): a credential that
    /// came with the fetch was never shown a challenge.
    var mayBeRemembered: Bool {
        guard credential.form == .password || credential.form == .token else { return false }
        return space.receivesCredentialSecurely || Loopback.isLoopback(space.host)
            || [.client, .agent, .session, .keyring].contains(source)
    }

    var authentication: FetchRunResult.Authentication {
        .init(method: space.authenticationMethod, source: source, user: credential.shownUser)
    }
}

extension Attempt {
    /// The value of the field that carries it; `nil` where it is no field that does. Notes what the answer's proof will be
    /// about.
    mutating func authorization(
        for request: @autoclosure () -> DigestRequest, _ environment: FetchEnvironment, nonces: inout DigestNonces
    ) -> Secret? {
        digestExchange = nil
        if case .header(let name, _) = credential.form {
            // As the server spells it: not every one knows that names compare without regard to case.
            let scheme = if case .other(let asked) = challenge { asked.scheme } else { name.string }
            return Secret(joining: [.text("\(scheme) "), .secret(credential.secret)])
        }
        switch challenge {
        case .basic:
            return BasicScheme.authorization(for: credential)
        case .bearer:
            return Secret(joining: [.text("Bearer "), .secret(credential.secret)])
        case .digest(let digest):
            let response = nonces.nextResponse(
                to: digest, at: challenger, clientNonce: environment.makeClientNonce())
            let request = request()
            digestExchange = DigestExchange(response: response, requestTarget: request.target)
            return response.authorization(for: credential, request)
        case .ntlm, .negotiate, .other, .socks:
            return nil
        }
    }

    /// Takes over the nonce that the server has announced for the next request (RFC 7616 section 3.5).
    mutating func follow(_ exchange: DigestExchange, _ info: AuthenticationInfo, nonces: inout DigestNonces) {
        guard let nonce = info.nextNonce else { return }
        challenge = .digest(nonces.follow(exchange.response, with: ExactText(nonce), at: challenger))
    }

    /// For the adapter, where the login belongs to the connection. The domain has a field of its own, or stands before the
    /// user's name.
    func handshake(_ rules: SchemeRules) -> Handshake? {
        let target: Handshake.Target = space.proxyType == nil ? .origin : .proxy
        switch challenge {
        case .ntlm:
            var (domain, user) = (credential.domain ?? "", credential.user)
            let text = user.string
            if credential.domain == nil, let slash = text.utf8.firstIndex(of: UInt8(ascii: "\\")) {
                (domain, user) = (ExactText(text[..<slash]), ExactText(text[text.utf8.index(after: slash)...]))
            }
            return Handshake(scheme: .ntlm, target: target, user: user, domain: domain, password: credential.secret)
        case .negotiate:
            let delegates = target == .origin && challenger.matches(rules.delegationHosts)
            return Handshake(
                scheme: .negotiate, target: target, delegates: delegates, serverEndPoint: serverEndPoint)
        default:
            return nil
        }
    }
}
