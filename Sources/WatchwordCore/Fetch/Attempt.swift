internal import WatchwordProtocol

/// An attempt to log in to one protection space with one credential.
struct Attempt: Sendable, Equatable {
    var challenge: AnswerableChallenge
    @Indirect var space: ProtectionSpace
    private(set) var candidate: Candidate
    /// Whether the credential is sent before a challenge in this fetch.
    var isPreemptive = false
    /// Whether the attempt is preemptive and the server has not named a realm (`"always"` in SEMANTICS rule 16).
    var isUnasked = false
    /// How often the attempt was repeated without a refusal.
    private(set) var repeats = Repeats()
    /// The Digest exchange of the last request, which the server's proof (`rspauth`) has to match; `nil` for any other
    /// scheme.
    @IndirectOptional var digestExchange: DigestExchange?
    /// The certificate hash of the connection that challenged, to which a Negotiate ticket is bound
    /// (`tls-server-end-point`, RFC 5929 section 4).
    var serverEndPoint: [UInt8]?
    /// Whether the server has accepted the credential in this fetch.
    var isAccepted = false
    /// Whether the last connection that had logged in with it has ended too early.
    var needsNewConnection = false
    /// Whether the audit log has a record of this use.
    var isAudited = false

    struct Repeats: Sendable, Equatable {
        /// The number of consecutive responses with `stale=true`.
        var staleAnswers = 0
        /// How often the ticket was bound to another server certificate.
        var rebindings = 0
    }

    init(_ challenge: AnswerableChallenge, _ space: ProtectionSpace, _ candidate: Candidate) {
        self.init(challenge, Indirect(wrappedValue: space), candidate)
    }

    init(_ challenge: AnswerableChallenge, _ space: Indirect<ProtectionSpace>, _ candidate: Candidate) {
        self.challenge = challenge
        _space = space
        self.candidate = candidate
        self.candidate.isAnswer = false
    }

    var credential: LoginCredential { candidate.credential }
    var source: CredentialSource { candidate.source }
    /// The keyring item that the credential came from, if it was stored for exactly this space.
    var item: String? { candidate.item }
    /// The partition of the session cache in which the credential is stored, or will be.
    var partition: Partition? { candidate.partition }
    var provenAt: Duration? { candidate.provenAt }
    var mark: ForgetLog.Mark? { candidate.mark }
    var respondent: Respondent? { candidate.respondent }
    var steering: AuthenticationQueues.Steering? { candidate.steering }

    mutating func recordProof(at now: Duration) { candidate.provenAt = now }

    mutating func begin(at mark: ForgetLog.Mark) { candidate.mark = mark }

    /// Binds the ticket to the certificate of another connection.
    mutating func rebind(to serverEndPoint: [UInt8]?) {
        repeats.rebindings += 1
        self.serverEndPoint = serverEndPoint
    }

    var challenger: Challenger { Challenger(space) }

    /// Returns a retry with the same credential if only the nonce was stale (`stale=true`, RFC 7616 section 3.3).
    /// Returns `nil` after `Limits.staleNonces` stale responses in a row, or if the new challenge is weaker or has the
    /// same nonce.
    func retry(_ offers: OfferList) -> Attempt? {
        if credential.binding != nil { return retryWithNonce(offers) }
        guard case .digest(let used) = challenge, repeats.staleAnswers < Limits.staleNonces else { return nil }
        guard let fresh = challenge(by: offers, after: used, where: { $0.isStale }) else { return nil }
        var retry = self
        retry.challenge = fresh
        retry.repeats.staleAnswers += 1
        return retry
    }

    /// Returns the challenge with a new nonce to which the credential is sent once more, because the server may have
    /// refused only a nonce that was used before, without saying so (`stale`); `nil` if the password was refused.
    func secondTry(_ offers: OfferList) -> AnswerableChallenge? {
        guard case .digest(let used) = challenge, isPreemptive || isAccepted, repeats.staleAnswers == 0 else {
            return nil
        }
        return challenge(by: offers, after: used) { !$0.isStale }
    }

    /// Returns the offer of the same realm with another nonce, unless it is weaker.
    private func challenge(
        by offers: OfferList, after used: DigestChallenge, where matches: (DigestChallenge) -> Bool
    ) -> AnswerableChallenge? {
        offers.answerable.first { offer in
            guard case .digest(let digest) = offer else { return false }
            return matches(digest) && digest.realm == challenge.realm && digest.nonce != used.nonce
                && offer.strength >= challenge.strength  // guard: stale-weaker-algorithm
                && offer.canCarry(credential, at: challenger)
        }
    }

    /// Returns a retry with the nonce that the server requires in proofs (RFC 9449 section 9).
    private func retryWithNonce(_ offers: OfferList) -> Attempt? {
        let isAsked = offers.offers.contains {
            $0.authenticationMethod == .bearer && $0.params["error"] == "use_dpop_nonce"
        }
        guard isAsked, repeats.staleAnswers < 1 else { return nil }
        var retry = self
        retry.repeats.staleAnswers += 1
        return retry
    }

    /// Returns the next challenge of a scheme that only the client implements; `nil` if the server repeats the last
    /// one.
    func continuation(_ offers: OfferList) -> AnswerableChallenge? {
        guard case .header(_, _) = credential.form, case .other(let used) = challenge else { return nil }
        return offers.answerable.first { offer in
            guard case .other(let next) = offer else { return false }
            return offer.scheme == challenge.scheme && !next.raw.utf8.elementsEqual(used.raw.utf8)
        }
    }

    /// Returns the challenge that rejects only the token's scope (`insufficient_scope`, RFC 6750 section 3.1), if any.
    func tooNarrow(_ offers: OfferList) -> AnswerableChallenge? {
        offers.answerable.first { offer in
            guard case .bearer = challenge, case .bearer(let realm, _, true) = offer else { return false }
            return realm == challenge.realm
        }
    }

    /// Whether the server rejected only the nonce (`stale=true`), which does not mean that the password is wrong.
    func isCalledStale(by offers: OfferList) -> Bool {
        offers.answerable.contains { $0.digest?.isStale == true && $0.realm == challenge.realm }
    }

    /// Whether the credential may be stored. One that was sent unencrypted may be stored only if it is stored already,
    /// or if a respondent supplied it in answer to a challenge, which contains `receivesCredentialSecurely: false`
    /// (SEMANTICS rule 25).
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
    /// Returns the value of the `Authorization` or `Proxy-Authorization` field; `nil` for a login that the transfer
    /// adapter makes (NTLM, Negotiate, SOCKS). Sets `digestExchange`.
    mutating func authorization(
        for request: @autoclosure () -> DigestRequest, _ environment: FetchEnvironment, nonces: inout DigestNonces
    ) -> Secret? {
        digestExchange = nil
        if case .header(let name, _) = credential.form {
            // Uses the spelling of the challenge, since some servers do not ignore the case of scheme names.
            let scheme = if case .other(let asked) = challenge { asked.scheme } else { name.string }
            return Secret(joining: [.text("\(scheme) "), .secret(credential.secret)])
        }
        switch challenge {
        case .basic:
            return BasicScheme.authorization(for: credential)
        case .bearer:
            // A bound token is never sent as one that anyone can use (RFC 9449 section 7.1).
            let scheme = credential.binding == nil ? "Bearer" : "DPoP"  // guard: oauth-dpop-scheme
            return Secret(joining: [.text("\(scheme) "), .secret(credential.secret)])
        case .digest(let digest):
            let isLatin1 = challenger.matches(environment.rules.schemes.latin1Hosts)
            let response = nonces.nextResponse(
                to: digest.expectingLatin1(isLatin1), at: challenger, clientNonce: environment.clientNonces.next())
            let request = request()
            digestExchange = DigestExchange(response: response, requestTarget: request.target)
            return response.authorization(for: credential, request)
        case .ntlm, .negotiate, .other, .socks:
            return nil
        }
    }

    /// Adopts the nonce that the server has announced for the next request (`nextnonce`, RFC 7616 section 3.5).
    mutating func follow(_ exchange: DigestExchange, _ info: AuthenticationInfo, nonces: inout DigestNonces) {
        guard let nonce = info.nextNonce else { return }
        challenge = .digest(nonces.follow(exchange.response, with: ExactText(nonce), at: challenger))
    }

    /// Returns the connection-level login (NTLM, Negotiate) for the transfer adapter; `nil` for other schemes. An NTLM
    /// domain is the credential's `domain`, or else the part of the user name before a backslash.
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
            let delegates = target == .origin && challenger.matches(rules.delegationHosts)  // guard: delegation-hosts
            return Handshake(scheme: .negotiate, target: target, delegates: delegates, serverEndPoint: serverEndPoint)
        default:
            return nil
        }
    }
}
