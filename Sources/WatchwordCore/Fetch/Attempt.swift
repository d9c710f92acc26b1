internal import WatchwordProtocol

extension Attempt {
    init(_ challenge: AnswerableChallenge, _ space: ProtectionSpace, _ candidate: Candidate) {
        self.init(
            challenge: challenge, space: space, credential: candidate.credential, source: candidate.source,
            item: candidate.item)
    }

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

    /// The server found fault with the nonce, and has said nothing about the password.
    func isCalledStale(by offers: OfferList) -> Bool {
        offers.answerable.contains { $0.digest?.isStale == true && $0.realm == challenge.realm }
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
        space.receivesCredentialSecurely || hostIsLoopback(space.host)
            || [.client, .agent, .session, .keyring].contains(source)
    }

    var authentication: FetchRunResult.Authentication {
        .init(method: space.authenticationMethod, source: source, user: credential.user)
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
        case .digest: true
        }
    }
}

extension TransferResponse {
    /// Whether the credential that was sent can be taken for right: a server in trouble has not looked at it, and neither has
    /// one that did not want this request now, or here (408, 421, 425, 429).
    var showsAcceptance: Bool { ![401, 407, 408, 421, 425, 429].contains(status) && status < 500 }
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
