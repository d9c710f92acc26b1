internal import JSONText
internal import WatchwordProtocol

/// Lets a person log in, in a browser of this session or on any device.
extension TokenMachine {
    mutating func askPerson(_ clock: Clock) throws(FetchFailure) -> [Command] {
        guard let server else { throw .unexpectedEvent }
        // A login of a client that was registered for another port is of no use.
        if rule.clientID == nil { registered = nil }
        prepareProver()
        // Without a respondent, nothing would show the login.
        guard mayAsk else { return finish(.nothing) }  // guard: oauth-nobody-to-ask
        if rule.flow == .device || rule.flow == nil && server.authorization == nil && server.device != nil {
            return try requestCode(server)
        }
        state = .listening
        return [.listen(port: rule.redirectPort)]
    }

    // MARK: In a browser

    mutating func listening(at address: String, _ clock: Clock) throws(FetchFailure) -> [Command] {
        guard let server else { throw .unexpectedEvent }
        guard client == nil else { return try openLogin(at: address, clock) }
        guard rule.registersClient, let url = server.registration else {
            throw .login(at: server.issuer, "no client-id is configured, and it registers none")
        }
        let metadata: JSON = [
            "client_name": "Watchword", "redirect_uris": [.string("http://\(address)/callback")],
            "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
            "token_endpoint_auth_method": "none", "application_type": "native",
        ]
        state = .registering(address: address)
        return [.send(OAuthRequest(registration: url, metadata.serialized()))]
    }

    mutating func registered(_ reply: OAuthReply, _ address: String, _ clock: Clock) throws(FetchFailure) -> [Command] {
        guard let server else { throw .unexpectedEvent }
        let json = OAuthDocument.parse(reply.body)
        guard [200, 201].contains(reply.status), let id = json?["client_id"]?.string, !id.isEmpty else {
            let code = json?["error"]?.string?.shortened ?? "status \(reply.status)"
            throw .login(at: server.issuer, "it registers no client: \(code); set client-id in the configuration")
        }
        registered = OAuthClient(id: id, secret: json?.secret("client_secret").flatMap { $0.isEmpty ? nil : $0 })
        return try openLogin(at: address, clock)
    }

    private mutating func openLogin(at address: String, _ clock: Clock) throws(FetchFailure) -> [Command] {
        guard let server, let client else { throw .unexpectedEvent }
        let login = try BrowserLogin(server, client, scopes: target.scopes, resource: target.resource, at: address)
        state = .waitingForBrowser(login)
        let shown = TokenLogin(
            issuer: server.issuer, clientID: client.id, scopes: target.scopes,
            url: "http://\(address)\(login.startPath)",
            device: nil, expiresAt: clock.sinceEpoch + Self.loginTime)
        return ask(shown, wakeAt: clock.now + Self.loginTime)
    }

    /// Handles a request of a browser. Requests that are not the server's redirect leave the login as it is.
    mutating func visited(
        _ method: String, _ target: String, _ number: Int, _ login: BrowserLogin
    ) throws(FetchFailure) -> [Command] {
        guard method == "GET" else { return [.answer(.notFound, number: number)] }
        switch login.visit(target) {
        case .start:
            guard !login.hasStarted else { return [.answer(.used, number: number)] }  // guard: oauth-start-once
            var started = login
            started.hasStarted = true
            state = .waitingForBrowser(started)
            return [.answer(.redirect(to: login.page), number: number)]
        case .stray: return [.answer(.notFound, number: number)]
        case .code(let code):
            state = .exchanging(login, visit: number)
            self.login = nil
            return [.send(try login.request(for: code, resource: self.target.resource))]
        case .refused(let code):
            return [.answer(.failed, number: number)]
                + finish(.failed(code == "access_denied" ? declined : refused(code)))
        case .wrongIssuer:
            let failure = FetchFailure.login(
                at: login.server.issuer, "the answer comes from another server, and was dropped; try again")
            return [.answer(.failed, number: number)] + finish(.failed(failure))
        }
    }

    mutating func exchanged(
        _ login: BrowserLogin, _ reply: Result<OAuthReply, FetchFailure>, visit: Int, _ clock: Clock
    ) throws(FetchFailure) -> [Command] {
        switch try TokenReply(try reply.get(), from: login.server.issuer) {
        case .token(let token):
            if let nonce = login.nonce {
                let matches = token.identity?.isFor(
                    login.server, client: login.client.id, nonce: nonce, sinceEpoch: clock.sinceEpoch)
                guard matches == true else {
                    throw .login(at: login.server.issuer, "its ID token is not for this login")
                }
            }
            return try use(token, previous: nil, visit: visit, clock)
        case .refused(let code): throw refused(code.isEmpty ? "the code" : code)
        case .unavailable(let status): throw unavailable(status)
        }
    }

    private var declined: FetchFailure {
        FetchFailure(.challengeCancelled, "the login at \(DisplayURL.text(server?.issuer ?? "")) was declined there")
    }

    // MARK: On any device

    private mutating func requestCode(_ server: AuthorizationServer) throws(FetchFailure) -> [Command] {
        guard let client else { throw .login(at: server.issuer, "no client-id is configured") }
        var form: [(String, Secret)] = []
        form += target.scopeParameter + target.resourceParameter
        state = .requestingCode
        let endpoint = try server.required(\.device, "device authorization")
        return [.send(OAuthRequest(endpoint, form: form, client: client, server))]
    }

    mutating func receivedCode(_ reply: OAuthReply, _ clock: Clock) throws(FetchFailure) -> [Command] {
        guard let server, let client else { throw .unexpectedEvent }
        let login = try DeviceLogin(server, client, reply, now: clock.now)
        state = .waitingForDevice(login)
        let shown = TokenLogin(
            issuer: server.issuer, clientID: client.id, scopes: target.scopes, url: login.url,
            device: TokenLogin.DeviceCode(userCode: login.userCode, completeURL: login.completeURL),
            expiresAt: clock.sinceEpoch + login.expiry - clock.now)
        return ask(shown, wakeAt: clock.now + login.interval)
    }

    mutating func poll(_ login: DeviceLogin, _ clock: Clock) throws(FetchFailure) -> [Command] {
        guard clock.now < login.expiry else { throw expired }
        state = .polling(login)
        return [.send(try login.request())]
    }

    mutating func polled(
        _ login: DeviceLogin, _ reply: Result<OAuthReply, FetchFailure>, _ clock: Clock
    ) throws(FetchFailure) -> [Command] {
        var login = login
        // The server may be out of reach for a while; the code stays valid.
        switch try? reply.get() {
        case nil: login.backOff()
        case let reply?:
            switch try TokenReply(reply, from: login.server.issuer) {
            case .token(let token): return try use(token, previous: nil, clock)
            case .refused("authorization_pending"): break
            case .refused("slow_down"): login.slowDown()
            case .refused("access_denied"): throw declined
            case .refused("expired_token"): throw expired
            case .refused(let code): throw refused(code.isEmpty ? "the code" : code)
            case .unavailable: login.backOff()
            }
        }
        guard clock.now < login.expiry else { throw expired }
        state = .waitingForDevice(login)
        return [.wake(at: min(clock.now + login.interval, login.expiry))]
    }
}
