internal import WatchwordProtocol

/// What a response says about the login that was sent, and what becomes of that.
extension LoginResolution {
    // MARK: Challenges

    /// The question that a response raises; `nil` where this side does not ask who is there.
    func question(raisedBy response: TransferResponse, at side: Side, _ context: FetchContext) -> Question? {
        let (status, field) = side == .proxy ? (407, "Proxy-Authenticate") : (401, "WWW-Authenticate")
        guard response.status == status, side == .server || response.isFromProxy,
            let challenger = search.situation.chain.challenger(at: side)
        else { return nil }
        let fields = response.headers.values(of: field)
        guard !fields.isEmpty else { return nil }
        let (challenges, malformed) = ChallengeHeader.read(fields)
        let offers = OfferList(
            challenges, malformed: malformed, by: challenger, allowed: intent.plan.methods,
            keepsConnection: keepsConnection(side, response), isReadable: search.situation.chain.isReadable(challenger),
            context.environment.schemes)
        return Question(.login(offers, side), .response(response))
    }

    /// Whether a login of the connection is one to this challenger. A connection has no more than one.
    private func keepsConnection(_ side: Side, _ response: TransferResponse) -> Bool {
        if let other = outgoing.handshake, other.side != side { return false }
        return side == .proxy || search.situation.chain.reachesServer(response)
    }

    /// A server or a proxy wants to know who asks.
    mutating func challenged(_ question: Question, _ context: inout FetchContext) -> Resolution {
        guard case .login(let offers, let side) = question.kind else { return .fail(.unexpectedEvent) }
        guard search.situation.beginRound() else { return .fail(.tooManyRounds(at: offers.challenger)) }
        // Nobody waits for a verdict of the server while somebody is asked about the proxy.
        if side == .proxy, let attempt = outgoing.server { context.turns.endTrial(by: intent.id, in: attempt.space) }
        guard let attempt = outgoing[side] else { return choose(question, &context) }
        outgoing[side] = nil
        if let retry = attempt.retry(offers) {
            outgoing[side] = retry
            return .send
        }
        if let next = attempt.continuation(offers) {
            context.turns.endTrial(by: intent.id, in: attempt.space)
            return goOn(next, after: attempt, question)
        }
        if let wanted = attempt.named(by: offers).tooNarrow(offers) {
            noteTooNarrow(attempt, for: wanted, &context)
        } else {
            note(attempt, refusedWith: offers, &context)
        }
        return choose(question, &context)
    }

    // MARK: Logins that could not be made

    /// One of several servers behind the name, or somebody in between: to that one a ticket that names its own certificate is of
    /// no use anywhere else.
    mutating func bindAgain(_ serverEndPoint: [UInt8]?) -> Resolution? {
        guard var attempt = outgoing.server, attempt.challenge == .negotiate, let serverEndPoint,
            attempt.rebindings < Limits.channelChanges
        else { return nil }
        attempt.rebindings += 1
        attempt.serverEndPoint = serverEndPoint
        outgoing.server = attempt
        return .send
    }

    /// Rule 8 of the order of schemes (security rules, 6.7): a login that could not even be made leads to a question, and never
    /// silently to a weaker scheme.
    /// - Parameter obstacle: the result where nobody is asked; `nil` for the response that challenged.
    mutating func technicalFailure(
        _ obstacle: FetchFailure?, _ context: inout FetchContext
    ) -> Resolution? {
        guard var question = handshakeQuestion, let (attempt, side) = outgoing.handshake, !attempt.isAccepted,
            case .login(_, side) = question.kind
        else { return nil }
        outgoing[side] = nil
        context.turns.endTrial(by: intent.id, in: attempt.space)
        let challenger = attempt.challenger
        search.situation[challenger].noteRejection(of: attempt.challenge, in: attempt.space)
        search.situation[challenger].asksBeforeWeaker = true
        question.obstacle = obstacle
        return choose(question, &context)
    }

    // MARK: Acceptance

    /// The proxy has let the request pass. A failure when it could not prove that it knows the password.
    mutating func noteProxyAcceptance(_ response: TransferResponse, _ context: inout FetchContext) -> FetchFailure? {
        let isTunnel = search.situation.chain.isTunnel
        guard var attempt = outgoing.proxy, isTunnel ? !response.isFromProxy : response.status != 407 else {
            return nil
        }
        defer { context.turns.endTrial(by: intent.id, in: attempt.space) }
        if let exchange = attempt.digestExchange, !isTunnel {
            let info = AuthenticationInfo(fields: response.values(of: "Proxy-Authentication-Info"))
            guard exchange.isProven(by: info, for: attempt.credential, body: response.wholeBody) else {
                return .serverNotAuthentic(attempt.challenger)
            }
            follow(exchange, info, &attempt, &context)
        }
        // What comes through a tunnel is the server's, whatever it says.
        guard isTunnel || response.status == 401 || response.showsAcceptance else { return nil }
        accept(&attempt, path: "/", isProven: !isTunnel || !response.usedKeptConnection, &context)
        outgoing.proxy = attempt
        return nil
    }

    /// The proxy has let the tunnel through, if it was the server at its end that found fault.
    mutating func noteTunnel(_ failure: TransferFailure, _ context: inout FetchContext) {
        guard search.situation.chain.isTunnel, failure.isOfServer, var attempt = outgoing.proxy else { return }
        accept(&attempt, path: "/", isProven: true, &context)
        outgoing.proxy = attempt
    }

    /// The response does not challenge. A failure when the server could not prove that it knows the password.
    mutating func noteServerAcceptance(_ response: TransferResponse, _ context: inout FetchContext) -> FetchFailure? {
        guard var attempt = outgoing.server else { return nil }
        if let exchange = attempt.digestExchange {
            let info = AuthenticationInfo(fields: response.values(of: "Authentication-Info"))
            guard exchange.isProven(by: info, for: attempt.credential, body: response.wholeBody) else {
                return .serverNotAuthentic(search.situation.server)
            }
            if response.showsAcceptance { follow(exchange, info, &attempt, &context) }
        }
        if response.showsAcceptance {
            search.situation.chain.hasAuthenticated = true
            if attempt.isUnasked {
                // Nobody knows in which realm, or whether the server has looked at it: nothing is remembered.
                attempt.isAccepted = true
                context.turns.endTrial(by: intent.id, in: attempt.space, .taken)
            } else {
                let isProven = !attempt.challenge.isHandshake || !response.usedKeptConnection
                accept(&attempt, path: search.situation.chain.hop.url.path, isProven: isProven, &context)
            }
        }
        outgoing.server = attempt
        return nil
    }

    /// Takes over the nonce that the server has announced, unless the session was forgotten meanwhile.
    private func follow(
        _ exchange: DigestExchange, _ info: AuthenticationInfo, _ attempt: inout Attempt, _ context: inout FetchContext
    ) {
        if search.isCurrent(attempt, context) { attempt.follow(exchange, info, nonces: &context.session.nonces) }
    }

    private mutating func accept(
        _ attempt: inout Attempt, path: ExactText, isProven: Bool, _ context: inout FetchContext
    ) {
        if !attempt.isAccepted {
            search.situation.judge(attempt.space, attempt.credential.shownUser, isAccepted: true, &context)
        }
        attempt.isAccepted = true
        if isProven { attempt.provenAt = context.now }
        let isCurrent = search.isCurrent(attempt, context)
        context.turns.endTrial(by: intent.id, in: attempt.space, isProven && isCurrent ? .accepted : .none)
        context.session.nonces.accepted.note(attempt.challenge, at: attempt.challenger, path: path)
        if isCurrent { remember(attempt, path: path, isProven: isProven, &context) }
        // A value that a client has made answers one challenge, and not those of the others.
        let isForOthers = if case .header = attempt.credential.form { false } else { true }
        search.situation.turns.release(
            isForOthers && isCurrent ? .accepted(.login(attempt.credential, attempt.source)) : .passed(declined: []),
            TurnSlot(attempt.space), &context)
    }
}

extension TransferFailure {
    /// Seen only where a connection leads to the server.
    fileprivate var isOfServer: Bool {
        kind == .serverNotTrusted && cause == nil
            || [.clientCertificateRequired, .clientCertificateRefused].contains(cause)
    }
}

extension TransferResponse {
    /// As the server has hashed it; `nil` while it is still on its way.
    fileprivate var wholeBody: [UInt8]? { openBody == nil && !isDecoded ? body : nil }

    /// Of the header section and the trailer section.
    fileprivate func values(of name: String) -> [String] { (headers + trailers).values(of: name) }

    /// Whether the credential that was sent can be taken for right: a server in trouble has not looked at it, and neither has
    /// one that did not want this request now, or here (408, 421, 425, 429).
    var showsAcceptance: Bool { ![401, 407, 408, 421, 425, 429].contains(status) && status < 500 }
}
