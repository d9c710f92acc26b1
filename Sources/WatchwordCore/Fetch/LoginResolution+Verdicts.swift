internal import WatchwordProtocol

/// Handles the responses to a login: challenges, technical failures and acceptance.
extension LoginResolution {
    // MARK: Challenges

    /// Returns the question that a response raises; `nil` if this side does not challenge.
    func question(raisedBy response: TransferResponse, at side: Side, _ hop: HopState, _ context: FetchContext)
        -> Question?
    {
        let (status, field) = side == .proxy ? (407, "Proxy-Authenticate") : (401, "WWW-Authenticate")
        // A token whose scope is insufficient is refused with 403 (RFC 6750 section 3.1).
        let mayBeTooNarrow = response.status == 403 && side == .server && outgoing.server?.credential.form == .token
        guard response.status == status || mayBeTooNarrow,
            side == .server || response.isFromProxy,  // guard: proxy-login-from-proxy-only
            let challenger = hop.chain.challenger(at: side)
        else { return nil }
        let fields = response.headers.values(of: field)
        guard !fields.isEmpty else { return nil }
        let (challenges, malformed) = ChallengeHeader.read(fields)
        let offers = OfferList(
            challenges, malformed: malformed, by: challenger, allowed: hop.fetch.methods(at: challenger),
            allowsHandshake: allowsHandshake(side, response, hop), isReadable: hop.chain.isReadable(challenger),
            context.environment.rules.schemes)
        if mayBeTooNarrow, !canWiden(offers, hop, context) { return nil }
        var question = Question(.login(offers, side), .response(response))
        question.since = context.now
        return question
    }

    /// Whether a connection-level login to this challenger is possible. The connection must lead to the challenger
    /// itself, and not have a connection-level login to the other side.
    private func allowsHandshake(_ side: Side, _ response: TransferResponse, _ hop: HopState) -> Bool {
        if let other = outgoing.handshake, other.side != side { return false }
        return side == .proxy || hop.chain.reachesServer(response)
    }

    /// Handles a login challenge of a server or proxy.
    mutating func challenged(_ question: Question, _ hop: inout HopState, _ context: inout FetchContext) -> Resolution {
        guard case .login(let offers, let side) = question.kind else { return .fail(.unexpectedEvent) }
        guard hop.beginRound() else { return .fail(.tooManyRounds(at: offers.challenger)) }
        // Other fetches must not wait for the server's verdict while a respondent is asked about the proxy.
        if side == .proxy, let attempt = outgoing.server { context.endAttempt(by: hop.fetch.id, in: attempt.space) }
        recordWithheld(offers, &hop)
        guard let attempt = outgoing[side] else { return choose(question, &hop, &context) }
        outgoing[side] = nil
        if let retry = attempt.retry(offers) {
            outgoing[side] = retry
            return .send
        }
        // Another fetch may have learned meanwhile that the password is wrong.
        // guard: digest-no-second-try-after-a-refusal
        if !isRefusedMeanwhile(attempt, hop, context), let fresh = attempt.secondTry(offers) {
            context.endAttempt(by: hop.fetch.id, in: attempt.space, .unclear)
            return self.attempt(attempt.candidate, for: fresh, in: attempt.space, question, &hop, &context)
        }
        if let next = attempt.continuation(offers) {
            context.endAttempt(by: hop.fetch.id, in: attempt.space)
            return continueRounds(next, after: attempt, question, hop)
        }
        if let wanted = attempt.named(by: offers).tooNarrow(offers) {
            recordTooNarrow(attempt, for: wanted, &hop, &context)
        } else {
            recordRefusal(of: attempt, with: offers, &hop, &context)
        }
        return choose(question, &hop, &context)
    }

    // MARK: Technical failures

    /// Binds the ticket to the certificate of a new connection, which may lead to another server behind the same name.
    /// If an attacker intercepts the connection, a ticket bound to the attacker's certificate is useless elsewhere.
    mutating func bindAgain(_ serverEndPoint: [UInt8]?) -> Resolution? {
        guard var attempt = outgoing.server, attempt.challenge == .negotiate, let serverEndPoint,
            attempt.repeats.rebindings < Limits.channelChanges
        else { return nil }
        attempt.rebind(to: serverEndPoint)
        outgoing.server = attempt
        return .send
    }

    /// Handles a login that failed for a technical reason. The fetch asks a respondent and never uses a weaker scheme
    /// silently (SECURITY-RULES O2). Returns `nil` if the failure does not concern a login.
    /// - Parameter obstacle: the failure of the fetch if no respondent supplies a credential. If it is `nil`, the
    ///   response that challenged becomes the result.
    mutating func technicalFailure(
        _ obstacle: FetchFailure?, _ hop: inout HopState, _ context: inout FetchContext
    ) -> Resolution? {
        guard var question = handshakeQuestion, let (attempt, side) = outgoing.handshake, !attempt.isAccepted,
            case .login(_, side) = question.kind
        else { return nil }
        outgoing[side] = nil
        context.endAttempt(by: hop.fetch.id, in: attempt.space)
        let challenger = attempt.challenger
        hop[challenger].recordRejection(of: attempt.challenge, in: attempt.space)
        hop[challenger].promptsBeforeDowngrade = true
        question.obstacle = obstacle
        return choose(question, &hop, &context)
    }

    // MARK: Acceptance

    /// Records that the proxy has accepted the request. Returns a failure if the proxy's proof that it knows the
    /// password (`rspauth`) is wrong.
    mutating func recordProxyAcceptance(
        _ response: TransferResponse, _ hop: inout HopState, _ context: inout FetchContext
    ) -> FetchFailure? {
        guard !hop.chain.isTunnel, response.status != 407, var attempt = outgoing.proxy else { return nil }
        defer { context.endAttempt(by: hop.fetch.id, in: attempt.space) }
        if let exchange = attempt.digestExchange {
            let info = AuthenticationInfo(fields: response.values(of: "Proxy-Authentication-Info"))
            guard exchange.isProven(by: info, for: attempt.credential, body: response.wholeBody) else {
                return .serverNotAuthentic(attempt.challenger)
            }
            follow(exchange, info, &attempt, hop, &context)
        }
        guard response.status == 401 || response.showsAcceptance else { return nil }
        accept(&attempt, path: "/", isProven: true, most: response.mostRequests, &hop, &context)
        outgoing.proxy = attempt
        return nil
    }

    /// Records what a transfer shows about the logins before its response. An old connection shows nothing about a login
    /// of the connection, but it does not send it either, so that no fetch has to wait for the response.
    mutating func record(_ event: TransferEvent, _ hop: inout HopState, _ context: inout FetchContext) {
        switch event {
        case .opensTunnel: acceptTunnel(isProven: true, &hop, &context)
        case .reusesConnection:
            if hop.chain.isTunnel { acceptTunnel(isProven: false, &hop, &context) }
            if let attempt = outgoing.handshake?.attempt { context.endAttempt(by: hop.fetch.id, in: attempt.space) }
        case .interim: break
        }
    }

    /// Marks the login to the proxy as accepted if the proxy has refused the tunnel for another reason.
    mutating func recordTunnel(_ failure: TransferFailure, _ hop: inout HopState, _ context: inout FetchContext) {
        let isSOCKS = hop.chain.route?.endpoint.type == .socks
        if hop.chain.isTunnel, failure.isAfterProxyLogin(isSOCKS: isSOCKS) {
            acceptTunnel(isProven: true, &hop, &context)
        }
    }

    private mutating func acceptTunnel(isProven: Bool, _ hop: inout HopState, _ context: inout FetchContext) {
        guard var attempt = outgoing.proxy.take() else { return }
        accept(&attempt, path: "/", isProven: isProven, most: Limits.requestsWithOneLogin, &hop, &context)
        outgoing.proxy = attempt
    }

    /// Records a response of the server that is not a challenge. Returns a failure if the server's proof that it knows
    /// the password (`rspauth`) is wrong.
    mutating func recordServerAcceptance(
        _ response: TransferResponse, _ hop: inout HopState, _ context: inout FetchContext
    ) -> FetchFailure? {
        // Taken out and put back, because copying an attempt is expensive.
        guard var attempt = outgoing.server.take() else { return nil }
        defer { outgoing.server = attempt }
        if let exchange = attempt.digestExchange {
            let info = AuthenticationInfo(fields: response.values(of: "Authentication-Info"))
            guard exchange.isProven(by: info, for: attempt.credential, body: response.wholeBody) else {
                return .serverNotAuthentic(hop.server)
            }
            if response.showsAcceptance { follow(exchange, info, &attempt, hop, &context) }
        }
        if response.showsAcceptance {
            hop.chain.hasAuthenticated = true
            if attempt.isUnasked {
                // The realm is unknown, and the server may not have checked the credential, so nothing is remembered.
                attempt.isAccepted = true
                context.endAttempt(by: hop.fetch.id, in: attempt.space, .accepted(most: response.mostRequests))
            } else {
                let isProven = !attempt.challenge.isHandshake || !response.reusedConnection
                let path = hop.chain.hop.url.loginPath
                accept(&attempt, path: path, isProven: isProven, most: response.mostRequests, &hop, &context)
            }
        }
        return nil
    }

    /// Adopts the nonce that the server has announced, unless the credential was forgotten since the attempt began.
    private func follow(
        _ exchange: DigestExchange, _ info: AuthenticationInfo, _ attempt: inout Attempt, _ hop: HopState,
        _ context: inout FetchContext
    ) {
        if hop.isCurrent(attempt, context) { attempt.follow(exchange, info, nonces: &context.session.nonces) }
    }

    /// - Parameters:
    ///   - isProven: whether the server has checked the login now, rather than earlier on the same connection.
    ///   - most: see `InFlightAttempts.Verdict.accepted`.
    private mutating func accept(
        _ attempt: inout Attempt, path: ExactText, isProven: Bool, most: Int, _ hop: inout HopState,
        _ context: inout FetchContext
    ) {
        if !attempt.isAccepted {
            hop.report(attempt.space, attempt.credential.shownUser, isAccepted: true, &context)
        }
        attempt.isAccepted = true
        attempt.needsNewConnection = false
        if isProven { attempt.recordProof(at: sentAt) }
        let isCurrent = hop.isCurrent(attempt, context)
        let verdict: InFlightAttempts.Verdict = isProven && isCurrent ? .accepted(most: most) : .none
        context.endAttempt(by: hop.fetch.id, in: attempt.space, verdict)
        if hop.steering(to: attempt.challenger) == nil {  // guard: strength-of-the-server-itself
            context.session.nonces.accepted.record(attempt.challenge, at: attempt.challenger, path: path)
        }
        // guard: forget-login-under-way
        if isCurrent { remember(attempt, path: path, isProven: isProven, hop, &context) }
        // A header value made by a client answers one challenge, so other fetches cannot use it.
        let isForOthers = if case .header = attempt.credential.form { false } else { true }
        hop.leases.release(
            isForOthers && isCurrent ? .accepted(.login(attempt.credential, attempt.source)) : .passed(declined: []),
            LeaseSlot(attempt.space), &context)
    }
}

extension TransferFailure {
    /// Whether the proxy has accepted the login and refused the tunnel. 502 and 504 mean that it has tried to connect (RFC
    /// 9110 sections 15.6.3 and 15.6.5).
    fileprivate func isAfterProxyLogin(isSOCKS: Bool) -> Bool {
        switch cause {
        case .proxyRefused(let status?): [502, 504].contains(status) || TransferResponse.showsAcceptance(status)
        case .proxyRefused(nil): isSOCKS && !hasUnansweredLogin
        default: false
        }
    }
}

extension TransferResponse {
    /// The body that the server's proof covers; `nil` if the port checks the proof: while the body is streamed, and if it was
    /// decoded.
    fileprivate var wholeBody: [UInt8]? { openBody == nil && !isDecoded ? body : nil }

    /// Returns the values of a field in the header section and the trailer section.
    fileprivate func values(of name: String) -> [String] { headers.values(of: name) + trailers.values(of: name) }

    /// The number of requests that can be under way to the sender of the response at the same time.
    fileprivate var mostRequests: Int {
        httpVersion == "2" ? Limits.multiplexedRequestsWithOneLogin : Limits.requestsWithOneLogin
    }

    /// Whether the response shows that the credential was accepted. A server error (5xx) does not, nor does the refusal
    /// of a request at this time or on this connection (408, 421, 425, 429).
    var showsAcceptance: Bool { Self.showsAcceptance(status) }

    fileprivate static func showsAcceptance(_ status: Int) -> Bool {
        // guard: remember-what-was-looked-at
        ![401, 407, 408, 421, 425, 429].contains(status) && status < 500
    }
}
