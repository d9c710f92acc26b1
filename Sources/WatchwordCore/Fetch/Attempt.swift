internal import WatchwordProtocol

extension Attempt {
    init(_ challenge: AnswerableChallenge, _ space: ProtectionSpace, _ candidate: Candidate) {
        self.init(
            challenge: challenge, space: space, credential: candidate.credential, source: candidate.source,
            item: candidate.item)
    }

    /// The same credential once more, when only the nonce was too old (RFC 7616 section 3.3, `stale`). `nil` when that was
    /// so before: a server that says it for ever is not believed, nor one that asks for a weaker algorithm with it.
    func retry(_ offers: OfferList) -> Attempt? {
        guard case .digest(let used) = challenge, staleAnswers + 1 < Limits.staleNonces else { return nil }
        let fresh = offers.answerable.first { offer in
            guard case .digest(let digest) = offer else { return false }
            return digest.isStale && digest.realm == challenge.realm && digest.nonce != used.nonce
                && digest.algorithm.strength >= used.algorithm.strength && offer.canCarry(credential)
        }
        guard let fresh else { return nil }
        var retry = self
        retry.challenge = fresh
        retry.staleAnswers += 1
        return retry
    }

    /// The server found fault with the nonce, and has said nothing about the password.
    func isCalledStale(by offers: OfferList) -> Bool {
        offers.answerable.contains { $0.digest?.isStale == true && $0.realm == challenge.realm }
    }

    /// The value of the `Authorization` field. `exchange` is set to what the server's proof will be about.
    func authorization(
        for hop: HopRequest, _ environment: FetchEnvironment, nonces: inout DigestNonces,
        exchange: inout DigestExchange?
    ) -> Secret {
        exchange = nil
        switch challenge {
        case .basic:
            return BasicScheme.authorization(for: credential)
        case .digest(let digest):
            let response = nonces.nextResponse(
                to: digest, at: hop.url.origin, clientNonce: environment.makeClientNonce())
            let request = DigestRequest(
                method: hop.method, target: hop.requestTarget(environment.proxy), body: hop.body ?? [])
            exchange = DigestExchange(response: response, requestTarget: request.target)
            return response.authorization(for: credential, request)
        }
    }

    /// What travels readable is remembered only where somebody has seen that it does (semantics rule 25): a credential that
    /// came with the fetch was never shown a challenge.
    var mayBeRemembered: Bool {
        space.receivesCredentialSecurely || hostIsLoopback(space.host)
            || [.client, .agent, .session, .keyring].contains(source)
    }

    /// Takes over the nonce that the server has announced for the next request (RFC 7616 section 3.5).
    mutating func follow(
        _ exchange: DigestExchange, _ info: AuthenticationInfo, at origin: Origin, nonces: inout DigestNonces
    ) {
        guard let nonce = info.nextNonce else { return }
        challenge = .digest(nonces.follow(exchange.response, with: nonce, at: origin))
    }

    var authentication: FetchRunResult.Authentication {
        .init(method: space.authenticationMethod, source: source, user: credential.user)
    }
}

extension HopRequest {
    /// What the request line holds: a proxy is given the whole URL (RFC 9112 section 3.2.2), but a tunnel through one leads
    /// to the origin itself.
    fileprivate func requestTarget(_ proxy: ProxyRule) -> String {
        url.origin.scheme == .http && proxy.url(for: url.origin) != nil ? url.text : url.requestTarget
    }
}

extension Origin {
    /// Never leaves the machine.
    var isLoopback: Bool { hostIsLoopback(host) }
}

/// RFC 6761 section 6.3, RFC 1122 section 3.2.1.3, RFC 4291 section 2.5.3.
private func hostIsLoopback(_ host: String) -> Bool {
    host == "localhost" || host.hasSuffix(".localhost") || host == "[::1]"
        || (host.hasPrefix("127.") && host.utf8.allSatisfy { $0 == 0x2E || (0x30...0x39).contains($0) })
}

extension CredentialChange {
    init(_ kind: Kind, _ attempt: Attempt, in source: CredentialSource) {
        self.init(kind, SpacePattern(attempt.space), user: attempt.credential.user, source: source)
    }
}

extension AnswerableChallenge {
    var digest: DigestChallenge? {
        if case .digest(let challenge) = self { challenge } else { nil }
    }

    func canCarry(_ credential: PasswordCredential) -> Bool {
        switch self {
        case .basic: BasicScheme.canCarry(credential)
        case .digest(let challenge): challenge.charset.canCarry(credential)
        }
    }
}

extension TransferResponse {
    /// Whether the credential that was sent can be taken for right: a server in trouble has not looked at it, and neither has
    /// one that did not want this request now, or here (408, 421, 425, 429).
    var showsAcceptance: Bool { ![401, 407, 408, 421, 425, 429].contains(status) && status < 500 }
}

extension FetchFailure {
    static func serverNotAuthentic(_ origin: Origin) -> FetchFailure {
        FetchFailure(
            .serverNotAuthentic,
            "\(origin.text) gave a wrong proof that it knows the password (rspauth). Its response is not to be trusted, and nothing of it was kept. Look at what is between you and the server."
        )
    }

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
