internal import WatchwordProtocol

extension FetchFailure {
    /// The failure for an event that does not fit the state of the fetch, which is a bug in the broker. No request is
    /// sent.
    static let unexpectedEvent = FetchFailure(.internalError, "unexpected event in a fetch; please report this bug")

    static func tooManyRounds(at challenger: Challenger) -> FetchFailure {
        FetchFailure(
            .tooManyAttempts,
            "too many challenges (limit \(Limits.authenticationRounds)), the last from \(challenger.text); fetch aborted"
        )
    }

    static let rejectRestrictedCertificate = FetchFailure(
        .denied,
        "a client on the restricted socket or in a sandbox must supply a certificate and its key as PEM text, not as a file or token"
    )

    static func challengeCancelled(at challenger: Challenger) -> FetchFailure {
        FetchFailure(.challengeCancelled, "the login to \(challenger.text) was cancelled; nothing was fetched")
    }

    static func serverNotAuthentic(_ challenger: Challenger) -> FetchFailure {
        FetchFailure(
            .serverNotAuthentic,
            "\(challenger.text) did not prove that it knows the password (wrong rspauth), so the response was discarded; check whether the connection is intercepted"
        )
    }

    public init(_ failure: TransferFailure) {
        self.init(failure.cause?.kind ?? failure.kind.errorKind, failure.detail, cause: failure.wireCause)
        if case .proxyRefused(let status?)? = failure.cause { proxyStatus = status }
    }
}

extension TransferFailure.Kind {
    fileprivate var errorKind: ErrorKind {
        switch self {
        case .nameNotResolved: .nameNotResolved
        case .cannotConnect: .cannotConnect
        case .timedOut: .timedOut
        case .connectionLost: .connectionLost
        case .serverNotTrusted: .serverNotTrusted
        case .tlsFailed: .tlsFailed
        case .bodyTooLarge, .headersTooLarge: .tooLarge
        case .malformedResponse: .malformedResponse
        case .requestBodyIncomplete: .bodyIncomplete
        case .requestBodyGone: .bodyNotReplayable
        case .cancelled: .cancelled
        case .quotaExceeded: .busy
        case .outOfMemory, .internalError: .internalError
        }
    }
}

extension TransferFailure.Cause {
    fileprivate var kind: ErrorKind {
        switch self {
        case .proxyUnreachable, .proxyRefused, .proxyLoginRefused, .proxyLoginTooLong, .proxyTLSFailed: .proxyFailed
        case .clientCertificateUnreadable, .clientCertificateChanged, .clientKeyExposed, .clientKeyPassphraseWrong,
            .clientKeyMismatch, .tokenPINNotTried, .clientCertificateRefused, .clientCertificateRequired:
            .clientCertificateRejected
        // The same fetch may succeed later: after `kinit`, or when the KDC is reachable.
        case .noTicket, .channelChanged: .cannotConnect
        case .serverProofWrong: .serverNotAuthentic
        case .charactersUnsupported: .invalidAnswer
        case .ntlmChallengeUnusable, .ntlmNotContinued: .notSupported
        case .addressDenied: .denied
        case .loginConnectionEnded: .connectionLost
        case .tooManyWaiting: .busy
        }
    }
}
