internal import WatchwordProtocol

extension FetchFailure {
    /// An event that no action waits for: a mistake in the code that runs a fetch, and never a reason to send something.
    static let unexpectedEvent = FetchFailure(
        .internalError, "The fetch got an event that it did not wait for. Please report this.")

    static func tooManyRounds(at challenger: Challenger) -> FetchFailure {
        FetchFailure(
            .tooManyAttempts,
            "\(challenger.text) still asks for a login after \(Limits.authenticationRounds) rounds. The fetch has ended."
        )
    }

    static let foreignCertificate = FetchFailure(
        .denied,
        "A client on the restricted socket, or in a sandbox, gives a certificate and its key as PEM text, and not as a file or a token."
    )

    static func challengeCancelled(at challenger: Challenger) -> FetchFailure {
        FetchFailure(.challengeCancelled, "The log-in at \(challenger.text) was cancelled. Nothing was fetched.")
    }

    static func serverNotAuthentic(_ challenger: Challenger) -> FetchFailure {
        FetchFailure(
            .serverNotAuthentic,
            "\(challenger.text) gave a wrong proof that it knows the password (rspauth). Its response is not to be trusted, and nothing of it was kept. Look at what is between you and the server."
        )
    }

    public init(_ failure: TransferFailure) {
        self.init(failure.cause?.kind ?? failure.kind.errorKind, failure.detail, cause: failure.wireCause)
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
        // It may work later, unchanged: after a kinit, or when the KDC answers.
        case .noTicket, .channelChanged: .cannotConnect
        case .serverProofWrong: .serverNotAuthentic
        case .charactersUnsupported: .invalidAnswer
        case .ntlmChallengeUnusable, .ntlmNotContinued: .notSupported
        case .addressDenied: .denied
        case .tooManyWaiting: .busy
        }
    }
}
