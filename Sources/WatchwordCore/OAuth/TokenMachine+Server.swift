internal import WatchwordProtocol

/// Finds the authorization server, and decides how to get a token from it.
extension TokenMachine {
    mutating func start() throws(FetchFailure) -> [Command] {
        if rule.flow == .registry { return try requestFromRegistry() }
        if rule.flow == .clientCredentials, !query.isConsented { return finish(.needsConsent) }
        if let issuer = rule.issuer { return try findServer(issuer) }
        var places = WellKnown.resourceMetadata(of: query.url)
        if let text = query.challenge.metadata {
            // Another host could name its own authorization server (RFC 9728 section 7.7).
            // guard: oauth-metadata-origin
            guard let url = try? FetchURL(text), url.origin == query.url.origin else {
                throw FetchFailure(
                    .loginFailed,
                    "\(query.url.origin.text) refers to metadata at another place, \(DisplayURL.text(text)), which is not "
                        + "used; set issuer in the configuration")
            }
            places = [url]
        }
        return findIssuer(at: places)
    }

    private mutating func findIssuer(at places: [FetchURL]) -> [Command] {
        state = .findingIssuer(next: Array(places.dropFirst()))
        return [.send(OAuthRequest(document: places[0]))]
    }

    mutating func foundIssuer(
        _ reply: Result<OAuthReply, FetchFailure>, _ next: [FetchURL]
    ) throws(FetchFailure) -> [Command] {
        let reply = try reply.get()
        guard reply.status == 200 else {
            if !next.isEmpty { return findIssuer(at: next) }
            throw FetchFailure(
                .loginFailed,
                "cannot find out where to log in for \(query.url.origin.text): it has no metadata (status "
                    + "\(reply.status)); set issuer in the configuration")
        }
        let found = try ProtectedResource(reply.body, for: query.url)
        target.resource = target.resource ?? found.identifier
        target.path = found.path
        if target.scopes.isEmpty { target.scopes = found.scopes.united(with: []) }
        return try findServer(found.issuer)
    }

    private mutating func findServer(_ issuer: String) throws(FetchFailure) -> [Command] {
        guard let url = try? FetchURL(issuer), url.isSecureEnough else {
            throw .login(at: issuer, "the issuer is not a URL with https")
        }
        return findServer(issuer, at: WellKnown.serverMetadata(of: url))
    }

    private mutating func findServer(_ issuer: String, at places: [FetchURL]) -> [Command] {
        state = .findingServer(issuer: issuer, next: Array(places.dropFirst()))
        return [.send(OAuthRequest(document: places[0]))]
    }

    mutating func foundServer(
        _ reply: Result<OAuthReply, FetchFailure>, _ issuer: String, _ next: [FetchURL], _ clock: Clock
    ) throws(FetchFailure) -> [Command] {
        let reply = try reply.get()
        guard reply.status == 200 else {
            if !next.isEmpty { return findServer(issuer, at: next) }
            throw .login(at: issuer, "it has no metadata (status \(reply.status)); check issuer in the configuration")
        }
        server = try AuthorizationServer(reply.body, for: issuer)
        if rule.flow == .clientCredentials { return try requestAsClient() }
        return lookUp(tried: nil)
    }

    // MARK: Grants

    var key: OAuthGrant.Key {
        OAuthGrant.Key(resource: rule.resource, issuer: server?.issuer ?? "", clientID: rule.clientID ?? "")
    }

    private mutating func lookUp(tried: Secret?) -> [Command] {
        state = .lookingUp(tried: tried)
        return [.lookUp(key)]
    }

    /// - Parameter tried: a refresh token that the server has refused.
    mutating func found(_ grant: OAuthGrant?, tried: Secret?, _ clock: Clock) throws(FetchFailure) -> [Command] {
        self.grant = grant
        if grant != nil, !query.isConsented { return finish(.needsConsent) }
        guard let grant, grant.refresh != tried else {
            return try (grant == nil ? [] : [.forget(key)]) + askPerson(clock)
        }
        registered = grant.registered
        prover = grant.proofKey.map(TokenProver.init)
        if query.challenge.isInsufficient, !Set(grant.scopes).isSuperset(of: query.challenge.scopes) {
            // A scope that the server did not grant is not requested again (RFC 6749 section 3.3).
            let denied = grant.denied.filter(query.challenge.scopes.contains)
            guard denied.isEmpty else { throw notGranted(denied) }  // guard: oauth-denied-scope
            target.scopes = target.scopes.united(with: grant.scopes)
            return try askPerson(clock)
        }
        if query.needsLogin { return try askPerson(clock) }
        guard let server, let client else { throw .unexpectedEvent }
        state = .refreshing(grant)
        var form = [("grant_type", Secret(joining: [.text("refresh_token")])), ("refresh_token", grant.refresh)]
        form += target.resourceParameter
        return [.send(OAuthRequest(try server.required(\.token, "token"), form: form, client: client, server))]
    }

    /// The errors that another login would not end (RFC 6749 sections 4.1.2.1 and 5.2, RFC 8707, RFC 9449).
    private static let errorsBesidesTheGrant: Set<String> = [
        "invalid_request", "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope",
        "invalid_target", "invalid_dpop_proof", "use_dpop_nonce", "server_error", "temporarily_unavailable",
        "slow_down",
    ]

    mutating func refreshed(_ grant: OAuthGrant, _ reply: OAuthReply, _ clock: Clock) throws(FetchFailure) -> [Command]
    {
        switch try TokenReply(reply, from: grant.key.issuer) {
        case .token(let token): return try use(token, previous: grant, clock)
        case .refused("invalid_grant"): return lookUp(tried: grant.refresh)
        // The server does not know the client any more, which is then registered again.
        case .refused("invalid_client") where grant.registered != nil: return lookUp(tried: grant.refresh)
        case .refused(let code) where Self.errorsBesidesTheGrant.contains(code): throw refused(code)
        // Some servers do not say why, or have codes of their own. The grant is replaced by the next login.
        case .refused: return try askPerson(clock)
        case .unavailable(let status): throw unavailable(status)
        }
    }

    // MARK: Without a person

    private mutating func requestAsClient() throws(FetchFailure) -> [Command] {
        guard let server, let client else { throw .unexpectedEvent }
        prepareProver()
        var form = [("grant_type", Secret(joining: [.text("client_credentials")]))]
        form += target.scopeParameter + target.resourceParameter
        state = .requesting
        return [.send(OAuthRequest(try server.required(\.token, "token"), form: form, client: client, server))]
    }

    /// Requests a token from the service that the challenge names, as container registries do.
    private mutating func requestFromRegistry() throws(FetchFailure) -> [Command] {
        // Only a challenge names the service.
        guard let realm = query.challenge.realm else { return finish(.nothing) }
        // The service gets the password of the user.
        guard let url = try? FetchURL(realm), url.isSecureEnough,
            let service = rule.issuer.flatMap({ try? FetchURL($0) }),
            url.origin == service.origin  // guard: oauth-token-service
        else {
            throw FetchFailure(
                .loginFailed,
                "\(query.url.origin.text) names a token service that is not configured, "
                    + "\(DisplayURL.text(realm)); set issuer in the configuration to its origin"
            )
        }
        var parameters = query.challenge.service.map { [("service", $0)] } ?? []
        parameters += query.challenge.scopes.map { ("scope", $0) }
        let text = parameters.map { "\($0)=\(OAuthText.formEncoded(header: $1))" }.joined(separator: "&")
        let whole = [url.query, text.isEmpty ? nil : text].compactMap(\.self).joined(separator: "&")
        state = .requesting
        let target = FetchURL(origin: url.origin, path: url.path, query: whole.isEmpty ? nil : whole)
        return [.send(OAuthRequest(registry: target, needsLogin: offersLogin, mayAsk: mayAsk))]
    }

    mutating func received(_ reply: OAuthReply, _ clock: Clock) throws(FetchFailure) -> [Command] {
        switch try TokenReply(reply, from: rule.issuer ?? "") {
        case .token(let token): return try use(token, previous: nil, clock)
        // The service turns everybody away without saying how to log in.
        case .refused where rule.flow == .registry && [401, 403].contains(reply.status) && !reply.asksForPassword:
            guard !offersLogin else {
                throw .login(
                    at: rule.issuer ?? "",
                    "it refused the login with status \(reply.status); check the login that is stored for it, and whether "
                        + "it has access to \(query.url.origin.text)")
            }
            offersLogin = true
            return try requestFromRegistry()
        // There was no password for the service: the program gets the response of the registry.
        case .refused where rule.flow == .registry && reply.status == 401: return finish(.nothing)
        case .refused(let code): throw refused(code.isEmpty ? "status \(reply.status)" : code)
        case .unavailable(let status): throw unavailable(status)
        }
    }

    // MARK: Tokens

    /// Ends with a token. A refresh token is stored before the access token is used, because the server may have invalidated
    /// the previous one.
    mutating func use(
        _ token: IssuedToken, previous: OAuthGrant?, visit: Int? = nil, _ clock: Clock
    ) throws(FetchFailure) -> [Command] {
        guard !token.isBound || prover != nil else {
            throw .login(at: key.issuer, "it sent a token that is bound to another key")
        }
        // Without a browser there is no nonce; the other claims are checked all the same.
        if let identity = token.identity, visit == nil, let server, let client,
            !identity.isFor(server, client: client.id, nonce: identity.nonce, sinceEpoch: clock.sinceEpoch)
        {
            throw .login(at: key.issuer, "its ID token is not for this login")
        }
        let granted = token.scopes ?? previous?.scopes ?? target.scopes
        let missing = query.challenge.scopes.filter { !granted.contains($0) }
        var credential = LoginCredential(form: .token, secret: token.access, persistence: .forSession)
        credential.path = resourcePath
        credential.range.excluded = query.excludedPaths
        if token.isBound { credential.binding = prover?.key }
        credential.expiresAt = token.lifetime.map { clock.sinceEpoch + $0 - min(Self.leeway, $0 / 10) }
        if missing.isEmpty { credential.scope = BearerScope(granted.joined(separator: " ")) }
        var outcome = TokenOutcome.token(credential)
        if query.challenge.isInsufficient, !missing.isEmpty, rule.flow != .registry {
            outcome = .failed(notGranted(missing))
        }
        guard let refresh = token.refresh ?? previous?.refresh,
            rule.flow != .registry, rule.flow != .clientCredentials
        else {
            if case .failed = outcome { isDenied = rule.flow != .clientCredentials }
            return finish(outcome, visit: visit)
        }
        var grant = OAuthGrant(key, scopes: granted.united(with: []), refresh: refresh, registered: registered)
        grant.access = token.access
        grant.proofKey = prover?.key
        // A renewal requests no scopes.
        grant.denied = (previous?.denied ?? target.scopes).filter { !granted.contains($0) }
        self.grant = grant
        state = .storing(outcome, visit: visit)
        login = nil
        return [.store(grant)]
    }

    /// The path of the resource; `nil` for a whole server.
    private var resourcePath: ExactText? {
        guard let url = try? FetchURL(rule.resource) else { return nil }
        // A table may be for a whole server with several resources.
        let path = target.path.map { PathRange.path(url.path, covers: $0) ? $0 : url.path } ?? url.path
        return path == "/" ? nil : path
    }

    // MARK: Failures

    func refused(_ code: String) -> FetchFailure {
        let advice =
            switch code {
            case "invalid_client", "unauthorized_client": "check client-id and the client's secret in the configuration"
            case "invalid_scope": "check scopes in the configuration"
            case "invalid_target": "check resource in the configuration"
            default: "try again"
            }
        return .login(
            at: key.issuer.isEmpty ? rule.issuer ?? "" : key.issuer, "it refused: \(code.shortened); \(advice)")
    }

    func unavailable(_ status: Int) -> FetchFailure {
        .login(
            at: key.issuer.isEmpty ? rule.issuer ?? "" : key.issuer,
            "it is not available (status \(status)); try again later")
    }

    private func notGranted(_ scopes: [String]) -> FetchFailure {
        .login(
            at: key.issuer,
            "it did not grant \(scopes.joined(separator: " ").shortened), which \(query.url.origin.text) requires; "
                + "run \"watchword credentials forget --site \(query.url.origin.text)\" to ask for it again")
    }
}
