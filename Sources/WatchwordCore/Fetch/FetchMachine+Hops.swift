internal import WatchwordProtocol

/// From one request to the next: where it goes, what it carries, what its response means.
extension FetchMachine {
    /// A new URL: nothing of the last one goes along but what is for the same place.
    mutating func enterHop(
        from previous: Origin?, _ context: inout FetchContext,
        events: [FetchEvent]
    ) -> FetchStep {
        let before = route
        route = proxyRoute(context.environment.proxy)
        if route != before { outgoing.proxy = nil }
        outgoing.server = nil
        handshakeQuestion = nil
        do throws(FetchFailure) {
            if let route { try context.environment.hosts.check(route) }
        } catch {
            return fail(error, &context)
        }
        enterConnection(from: previous, context)
        return startHop(&context, events: events)
    }

    /// Before the first request of a hop: what the session has for those on the way.
    mutating func startHop(
        _ context: inout FetchContext, events: [FetchEvent]
    ) -> FetchStep {
        context.session.wallTime = context.environment.sinceEpoch
        for side in Side.allCases where outgoing[side] == nil {
            if side == .server, let own = unaskedAttempt(context) {
                outgoing.server = own
                continue
            }
            guard let challenger = challenger(at: side),
                let attempt = preemptiveAttempt(at: challenger, context)
            else { continue }
            if let consultation = nextConsultation(for: attempt.space, context) {
                return consult(consultation, then: .hop(events))
            }
            if mayUseStorage(for: attempt.space, context) { outgoing[side] = attempt }
        }
        var step = transfer(&context)
        step.events.insert(contentsOf: events, at: 0)
        return step
    }

    private func challenger(at side: Side) -> Challenger? {
        side == .server ? server : route.map { .proxy($0.endpoint) }
    }

    private func proxyRoute(_ rule: ProxyRule) -> ProxyRoute? {
        let configured = rule.endpoint(for: hop.url.origin)
        switch plan.proxy {
        case .none: return nil
        case .configured: return configured.map { ProxyRoute(endpoint: $0, isNamedByFetch: false) }
        case .named(let endpoint): return ProxyRoute(endpoint: endpoint, isNamedByFetch: endpoint != configured)
        }
    }

    // MARK: Requests

    /// Sends what `outgoing` holds.
    mutating func transfer(_ context: inout FetchContext) -> FetchStep {
        dropStored(&context)
        if let obstacle = bodyObstacle(&context) ?? foreignCertificate(&context) { return obstacle }
        if let step = awaitVerdict(&context) { return step }
        let timeout = time.left
        guard timeout > .zero else { return timedOut(&context) }
        time.noteRequest()
        state = .transferring(since: context.now)
        exchanges += 1
        noteUses(&context)
        var request = TransferRequest(
            url: hop.url, method: hop.method, headers: hop.headers, body: hop.body, proxy: nil as ProxyRequest?,
            timeout: timeout, maxBodyBytes: plan.maxBodyBytes)
        request.omittedHeaders = plan.omittedHeaders
        request.connectTimeout = plan.connectTimeout
        request.deniedAddresses = context.environment.hosts.addresses
        request.delivery = plan.delivery
        request.decompresses = plan.decompresses
        request.maxBytesPerSecond = plan.maxBytesPerSecond
        request.lowSpeed = plan.lowSpeed
        request.proxy = proxyRequest(&context)
        // A proxy that forwards it rewrites the request line: the server sees the origin form, whatever the proxy is given.
        let hop = hop
        request.authorization = outgoing.server?.authorization(
            for: DigestRequest(method: hop.method, target: hop.url.requestTarget, body: hop.body?.bytes ?? []),
            context.environment, nonces: &context.session.nonces)
        outgoing.proofs = [outgoing.server, isTunnel ? nil : outgoing.proxy].compactMap { ResponseProof($0) }
        request.proofs = outgoing.proofs
        request.handshake = outgoing.handshake?.attempt.handshake(context.environment.schemes)
        request.needsNewConnection = needsNewConnection(now: context.now)
        if hop.url.origin.scheme == .https { secure(&request) }
        let marks = marks(request)
        // libcurl continues a login by NTLM on any connection of the identity that was logged in before.
        if request.needsNewConnection { context.identities.forget { $0 == marks } }
        request.identity = context.identities.identity(for: marks, now: context.now)
        let events = plan.reportsExchanges ? [FetchEvent.requested(SentRequest(request, outgoing))] : []
        return FetchStep(.transfer(request), events: events)
    }

    private mutating func proxyRequest(
        _ context: inout FetchContext
    ) -> ProxyRequest? {
        guard let endpoint = route?.endpoint else { return nil }
        var proxy = ProxyRequest(kind: endpoint.kind, host: endpoint.host.string, port: endpoint.port)
        if endpoint.type == .socks, let credential = outgoing.proxy?.credential {
            proxy.user = Secret(joining: [.text(credential.user.string)])
            proxy.password = credential.secret
            return proxy
        }
        let tunnel = "\(hop.url.origin.host):\(hop.url.origin.port)"
        let request =
            isTunnel
            ? DigestRequest(method: "CONNECT", target: tunnel)
            : DigestRequest(method: hop.method, target: hop.url.text, body: hop.body?.bytes ?? [])
        proxy.authorization = outgoing.proxy?.authorization(
            for: request, context.environment, nonces: &context.session.nonces)
        return proxy
    }

    var isTunnel: Bool { hop.url.origin.scheme == .https || route?.endpoint.type == .socks }

    /// What makes the connection this fetch's own.
    private func marks(_ request: TransferRequest) -> ConnectionMarks {
        var marks = ConnectionMarks()
        if isTunnel, let proxy = outgoing.proxy { marks.tunnel = ConnectionMarks.Login(proxy) }
        if let (attempt, _) = outgoing.handshake { marks.handshake = ConnectionMarks.Login(attempt) }
        guard hop.url.origin.scheme == .https else { return marks }
        marks.trust = outgoing.trust
        marks.certificate = outgoing.certificate.credential
        marks.refusesCertificateRequest = request.refusesCertificateRequest
        if marks.trust != nil || marks.certificate != nil { marks.origin = hop.url.origin }
        return marks
    }

    // MARK: Responses

    /// The proxy has let the request pass. A failure when it could not prove that it knows the password.
    mutating func noteProxyAcceptance(
        _ response: TransferResponse, _ context: inout FetchContext
    ) -> FetchFailure? {
        guard var attempt = outgoing.proxy, isTunnel ? !response.isFromProxy : response.status != 407 else {
            return nil
        }
        defer { context.turns.endTrial(by: id, in: attempt.space) }
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
        guard isTunnel, failure.isOfServer, var attempt = outgoing.proxy else { return }
        accept(&attempt, path: "/", isProven: true, &context)
        outgoing.proxy = attempt
    }

    /// A response that does not challenge: accepts the attempt, redirects, or is the result.
    mutating func settle(
        _ response: TransferResponse, _ context: inout FetchContext
    ) -> FetchStep {
        if var attempt = outgoing.server {
            if let exchange = attempt.digestExchange {
                let info = AuthenticationInfo(fields: response.values(of: "Authentication-Info"))
                guard exchange.isProven(by: info, for: attempt.credential, body: response.wholeBody) else {
                    return fail(.serverNotAuthentic(server), &context)
                }
                if response.showsAcceptance { follow(exchange, info, &attempt, &context) }
            }
            if response.showsAcceptance {
                hasAuthenticated = true
                if attempt.isUnasked {
                    // Nobody knows in which realm, or whether the server has looked at it: nothing is remembered.
                    attempt.isAccepted = true
                    context.turns.endTrial(by: id, in: attempt.space, .taken)
                } else {
                    let isProven = !attempt.challenge.isHandshake || !response.usedKeptConnection
                    accept(&attempt, path: hop.url.path, isProven: isProven, &context)
                }
            }
            outgoing.server = attempt
        }
        context.turns.endTrial(by: id)
        return redirect(response, &context) ?? finish(response, &context)
    }

    private mutating func accept(
        _ attempt: inout Attempt, path: ExactText, isProven: Bool, _ context: inout FetchContext
    ) {
        if !attempt.isAccepted { judge(attempt, isAccepted: true, &context) }
        attempt.isAccepted = true
        if isProven { attempt.provenAt = context.now }
        let isCurrent = isCurrent(attempt, context)
        context.turns.endTrial(by: id, in: attempt.space, isProven && isCurrent ? .accepted : .none)
        context.session.nonces.accepted.note(attempt.challenge, at: attempt.challenger, path: path)
        if isCurrent { remember(attempt, path: path, isProven: isProven, &context) }
        // A value that a client has made answers one challenge, and not those of the others.
        let isForOthers = if case .header = attempt.credential.form { false } else { true }
        release(
            isForOthers && isCurrent ? .accepted(.login(attempt.credential, attempt.source)) : .passed(declined: []),
            TurnSlot(attempt.space), &context)
    }

    // MARK: The end

    mutating func consult(_ consultation: Consultation, then suspended: Suspended) -> FetchStep {
        state = .consulting(consultation, then: suspended)
        return FetchStep(.consult(consultation))
    }

    /// - Parameter unanswered: why nobody was asked about this response.
    mutating func finish(
        _ response: TransferResponse, unanswered: Unanswered? = nil, _ context: inout FetchContext
    ) -> FetchStep {
        if let bytes = response.unwantedBodyBytes, bytes > plan.maxBodyBytes {
            let text = "The response of \(server.text) is larger than \(plan.maxBodyBytes) bytes."
            return fail(FetchFailure(.tooLarge, text), &context)
        }
        leave(&context)
        state = .finished
        func accepted(_ attempt: Attempt?) -> FetchRunResult.Authentication? {
            attempt.flatMap { $0.isAccepted ? $0.authentication : nil }
        }
        var result = FetchResponse(
            response: response, url: hop.url, authentication: accepted(outgoing.server),
            proxyAuthentication: accepted(outgoing.proxy), unanswered: unanswered, exchanges: exchanges)
        if response.openBody != nil { result.proofs = outgoing.proofs }
        return FetchStep(
            .finish(result), events: [.responded(status: response.status, headers: response.headers)])
    }

    mutating func fail(_ failure: FetchFailure, _ context: inout FetchContext) -> FetchStep {
        leave(&context)
        state = .finished
        return FetchStep(.fail(failure))
    }

    mutating func tooManyAttempts(_ challenger: Challenger, _ context: inout FetchContext) -> FetchStep {
        let text =
            "\(challenger.text) still asks for a log-in after \(Limits.authenticationRounds) rounds. The fetch has ended."
        return fail(FetchFailure(.tooManyAttempts, text), &context)
    }
}

extension ConnectionMarks.Login {
    init(_ attempt: Attempt) {
        self.init(
            challenger: attempt.challenger, method: attempt.space.authenticationMethod, credential: attempt.credential)
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

    /// How large a body is that nobody wanted, when it comes to be the result after all; `nil` for any other.
    fileprivate var unwantedBodyBytes: Int? {
        guard [401, 407].contains(status) || (300...399).contains(status) else { return nil }
        return openBody.map { $0.announcedBytes ?? 0 } ?? body.count
    }

    /// Whether the credential that was sent can be taken for right: a server in trouble has not looked at it, and neither has
    /// one that did not want this request now, or here (408, 421, 425, 429).
    var showsAcceptance: Bool { ![401, 407, 408, 421, 425, 429].contains(status) && status < 500 }
}
