internal import WatchwordProtocol

/// The requests of a fetch, with their proxy, logins and redirects, and the end of the fetch.
extension FetchMachine {
    // MARK: Hops

    /// Prepares the next hop and starts it. Drops the login to the server, and the one to the proxy if the proxy has
    /// changed.
    mutating func enterHop(
        from previous: Origin?, _ context: inout FetchContext
    ) -> FetchCommand {
        let isOtherRoute: Bool?
        do throws(FetchFailure) {
            isOtherRoute = try hop.chain.chooseRoute(context.environment.proxy, context.upstreams, now: context.now)
        } catch {
            return fail(error, &context)
        }
        guard let isOtherRoute else {
            state = .findingUpstreams(from: previous, since: context.now)
            return .findUpstreams(chain.origin)
        }
        return enterRoute(isOther: isOtherRoute, from: previous, &context)
    }

    /// Prepares the hop for its proxy.
    mutating func enterRoute(
        isOther: Bool, from previous: Origin?, _ context: inout FetchContext
    ) -> FetchCommand {
        logins.enterHop(isOtherRoute: isOther)
        do throws(FetchFailure) {
            let hosts = context.environment.rules.hosts
            if let route = chain.route { try hosts.check(route) }  // guard: address-of-a-proxy
        } catch {
            return fail(error, &context)
        }
        trust.enter(from: previous, &hop, context)
        certificate.enter(from: previous, hop, context)
        return startHop(&context)
    }

    /// Sends the first request of a hop, or consults the client before that.
    mutating func startHop(_ context: inout FetchContext) -> FetchCommand {
        if let consultation = logins.prepare(hop, &context) { return consult(consultation, then: .hop) }
        return transfer(&context)
    }

    /// Follows a redirect, or consults the client before that. Returns `nil` if the response is not a redirect or
    /// redirects are not followed.
    mutating func redirect(_ response: TransferResponse, _ context: inout FetchContext) -> FetchCommand? {
        switch hop.chain.redirectOutcome(of: response, context.environment.rules.hosts) {
        case .nowhere: return nil
        case .refused(let failure): return fail(failure, &context)
        case .onward(let next):
            hop.leases.releaseAll(&context)
            guard fetch.subscription?.approvesRedirects == true else {
                return follow(next, after: response, &context)
            }
            let redirect = Redirect(
                status: response.status, from: chain.hop.url.text, to: next.url.text, method: next.method)
            return consult(.approveRedirect(redirect), then: .redirect(response, next))
        }
    }

    /// Follows a redirect that the client has approved, or does not want to be asked about.
    mutating func follow(
        _ next: HopRequest, after response: TransferResponse, _ context: inout FetchContext
    ) -> FetchCommand {
        context.notify(
            .redirected(status: response.status, from: chain.hop.url.text, to: next.url.text), of: fetch.id)
        let previous = chain.origin
        hop.chain.enter(next)
        return enterHop(from: previous, &context)
    }

    // MARK: Requests

    /// Sends the next request with the logins and decisions made so far. The fetch waits or fails instead if its body,
    /// its certificate, another fetch's attempt or its timeout requires that.
    mutating func transfer(_ context: inout FetchContext) -> FetchCommand {
        trust.refresh(&hop, context)
        logins.discardUnusableCredentials(hop, &context)
        certificate.refresh(hop, context)
        if let question = logins.questionBeforeRequest(hop, context) {
            return take(logins.challenged(question, &hop, &context), &context)
        }
        if let obstacle = body.obstacle(logins.outgoing, hop) { return take(obstacle, &context) }
        if certificate.isForeign(fetch) { return fail(.rejectRestrictedCertificate, &context) }
        // guard: attempt-preemptive
        if let side = logins.sideAwaitingVerdict(hop, &context), let attempt = logins.outgoing[side] {
            return pause(.request(side), LeaseSlot(attempt.space), at: .attempt, &context)
        }
        let timeout = time.left
        guard timeout > .zero else { return fail(timeoutFailure, &context) }
        time.recordRequest()
        state = .transferring(since: context.now)
        logins.sentAt = context.now
        exchanges += 1
        logins.auditUses(hop, &context)
        certificate.recordUse(hop, &context)
        let request = SharedRequest(request(timeout: timeout, &context))
        if fetch.reportsExchanges { context.notify(.requested(SentRequest(request, logins.outgoing)), of: fetch.id) }
        return .transfer(request)
    }

    private mutating func request(timeout: Duration, _ context: inout FetchContext) -> TransferRequest {
        var request = TransferRequest(
            url: chain.hop.url, method: chain.hop.method, headers: chain.hop.headers, body: chain.hop.body,
            timeout: timeout, fetch.value.$options)
        if chain.hasOtherRoutes, request.options.connectTimeout == nil {
            request.options.connectTimeout = Limits.upstreamConnect
        }
        request.cookies = chain.cookies.cookies(for: chain.origin)
        request.deniedAddresses = context.environment.rules.hosts.addresses
        request.proxy = proxyRequest(&context)
        // A forwarding proxy rewrites the request line, so the server receives the origin form in any case (RFC 9112
        // section 3.2.1).
        if case .program(let authorization) = fetch.originLogin {
            request.authorization = authorization
        } else {
            request.authorization = logins.outgoing.server?.authorization(
                for: DigestRequest(
                    method: request.method, target: request.url.requestTarget, body: request.body?.bytes ?? []),
                context.environment, nonces: &context.session.nonces)
        }
        if let credential = logins.outgoing.server?.credential, let key = credential.binding {
            let proof = TokenProof.make(
                by: key, method: request.method, request.url, token: credential.secret,
                nonce: context.proofNonces[chain.origin], sinceEpoch: context.environment.sinceEpoch)
            if let proof { request.headers.append(HeaderField(TokenProof.field, proof)) }
        }
        logins.outgoing.recordProofs(isTunnel: chain.isTunnel)
        request.proofs = logins.outgoing.proofs
        request.handshake = logins.outgoing.handshake?.attempt.handshake(context.environment.rules.schemes)
        request.needsNewConnection = fetch.needsNewConnection || logins.needsNewConnection(now: context.now, hop)
        if isTLSOurs { secure(&request) }
        let connectionKey = connectionKey(request)
        // Otherwise libcurl would reuse a connection of this identity that has logged in by NTLM before.
        if request.needsNewConnection { context.identities.forget { $0 == connectionKey } }
        request.identity = context.identities.identity(for: connectionKey, now: context.now)
        return request
    }

    private mutating func proxyRequest(_ context: inout FetchContext) -> ProxyRequest? {
        guard let endpoint = chain.route?.endpoint else { return nil }
        let hop = chain.hop
        var proxy = ProxyRequest(kind: endpoint.kind, host: endpoint.host.string, port: endpoint.port)
        if endpoint.type == .socks, let credential = logins.outgoing.proxy?.credential {
            proxy.user = Secret(joining: [.text(credential.user.string)])
            proxy.password = credential.secret
            return proxy
        }
        let request =
            chain.isTunnel
            ? DigestRequest(method: "CONNECT", target: "\(chain.origin.host):\(chain.origin.port)")
            : DigestRequest(method: hop.method, target: hop.url.absoluteTarget, body: hop.body?.bytes ?? [])
        proxy.authorization = logins.outgoing.proxy?.authorization(
            for: request, context.environment, nonces: &context.session.nonces)
        return proxy
    }

    /// Whether the broker makes the TLS connection to the origin.
    private var isTLSOurs: Bool { chain.isSecure && fetch.originLogin != .tunnel }

    private func secure(_ request: inout TransferRequest) {
        switch trust.decision {
        case .some(let decision): request.trust = .leaf(spkiSha256: decision.spkiSha256)
        case nil: request.trust = fetch.trust == .always ? .ask : .verify
        }
        request.clientCertificate = certificate.decision.credential.map(ClientCertificate.init)
        request.refusesCertificateRequest = certificate.refusesRequest(hop)
    }

    /// Returns the authentication state of the connection; only fetches with an equal state share it.
    private func connectionKey(_ request: TransferRequest) -> ConnectionKey {
        var connectionKey = ConnectionKey()
        connectionKey.program = fetch.program
        // guard: identity-tunnel
        if chain.isTunnel, let proxy = logins.outgoing.proxy { connectionKey.tunnel = ConnectionKey.Login(proxy) }
        if let (attempt, _) = logins.outgoing.handshake { connectionKey.handshake = ConnectionKey.Login(attempt) }
        if logins.outgoing.server?.challenge.isUnknown == true
            || !chain.isTunnel && logins.outgoing.proxy?.challenge.isUnknown == true
        {
            connectionKey.fetch = fetch.id
        }
        guard isTLSOurs else { return connectionKey }
        connectionKey.trust = trust.decision  // guard: identity-trust
        connectionKey.certificate = certificate.decision.credential  // guard: identity-certificate
        connectionKey.refusesCertificateRequest = request.refusesCertificateRequest
        if connectionKey.trust != nil || connectionKey.certificate != nil { connectionKey.origin = chain.origin }
        return connectionKey
    }

    // MARK: Result

    /// - Parameter unanswered: why no respondent was asked about this response.
    mutating func finish(
        _ response: TransferResponse, unanswered: Unanswered? = nil, _ context: inout FetchContext
    ) -> FetchCommand {
        if let failure = response.bodyFailure { return fail(FetchFailure(failure), &context) }
        if let bytes = response.unwantedBodyBytes, bytes > fetch.options.maxBodyBytes {
            let text =
                "the response of \(chain.server.text) is larger than \(fetch.options.maxBodyBytes) bytes; allow a larger body"
            return fail(FetchFailure(.tooLarge, text), &context)
        }
        leave(&context)
        state = .finished
        func accepted(_ attempt: Attempt?) -> FetchRunResult.Authentication? {
            attempt.flatMap { $0.isAccepted ? $0.authentication : nil }
        }
        var result = FetchResponse(
            response: response, url: chain.hop.url, authentication: accepted(logins.outgoing.server),
            proxyAuthentication: accepted(logins.outgoing.proxy),
            unanswered: unanswered ?? logins.unanswered(withoutChallenge: response, hop, context), exchanges: exchanges)
        if response.openBody != nil { result.proofs = logins.outgoing.proofs }
        context.notify(.responded(status: response.status, headers: response.headers), of: fetch.id)
        return .finish(result)
    }

    mutating func fail(_ failure: FetchFailure, _ context: inout FetchContext) -> FetchCommand {
        leave(&context)
        state = .finished
        return .fail(failure)
    }

    /// Leaves the queue and releases all leases. Called for every end of a fetch.
    private mutating func leave(_ context: inout FetchContext) {
        let id = fetch.id
        leaveQueue(&context)
        hop.leases.releaseAll(&context)
        // guard: memory-of-a-login-connection
        context.identities.forget { $0.trust?.fetch == id || $0.fetch == id || $0.holdsTransientSecret }
    }
}

extension ConnectionKey.Login {
    init(_ attempt: Attempt) {
        self.init(
            challenger: attempt.challenger, method: attempt.space.authenticationMethod, credential: attempt.credential)
    }
}

extension TransferResponse {
    /// The size of the body of a challenge or redirect that has become the result; `nil` for any other response. The
    /// transfer does not apply `maxBodyBytes` to such a body.
    fileprivate var unwantedBodyBytes: Int? {
        guard [401, 407].contains(status) || (300...399).contains(status) else { return nil }
        return openBody.map { $0.announcedBytes ?? 0 } ?? body.count
    }
}
