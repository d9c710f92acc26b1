internal import WatchwordCore

/// The logins by NTLM of one transfer: watches what the targets send, and says when libcurl has to be stopped (security rule N8).
struct NTLMWatch {
    /// Why, and by which target.
    struct End: Equatable {
        let reason: NTLMAttempt.End
        let target: Handshake.Target
    }

    private var attempts: [(target: Handshake.Target, attempt: NTLMAttempt)]

    init(_ request: TransferRequest) {
        attempts = request.handshakes.filter { $0.scheme == .ntlm }.map { ($0.target, NTLMAttempt()) }
    }

    /// Why libcurl was stopped.
    var end: End? { first(\.end) }

    /// The same after libcurl has ended by itself.
    var endOfTransfer: End? { first(\.endOfTransfer) }

    private func first(_ end: KeyPath<NTLMAttempt, NTLMAttempt.End?>) -> End? {
        for (target, attempt) in attempts {
            if let reason = attempt[keyPath: end] { return End(reason: reason, target: target) }
        }
        return nil
    }

    /// Whether libcurl may open a connection.
    mutating func connect() -> Bool {
        for index in attempts.indices { _ = attempts[index].attempt.connect() }
        return end == nil
    }

    /// Whether `outcome` leaves a connection that is not logged in. On such a one a later transfer would begin in the middle.
    func isUnfinished(after outcome: TransferPort.Outcome) -> Bool {
        guard !attempts.isEmpty else { return false }
        guard case .success(let response) = outcome else { return true }
        return [401, 407].contains(response.status)
    }

    /// Takes one line of a header section; `response` has it already.
    /// - Returns: whether libcurl may go on. After a refusal it may do so up to the end of the section, so that the response is
    ///   known: it answers only then.
    mutating func receive(_ line: UnsafeRawBufferPointer, of response: ResponseHeaders) -> Bool {
        for index in attempts.indices {
            let isOrigin = attempts[index].target == .origin
            let fields = NTLMField.elements(of: line, named: isOrigin ? "WWW-Authenticate:" : "Proxy-Authenticate:")
            if response.isAtStart { attempts[index].attempt.beginResponse() }
            for field in fields {
                attempts[index].attempt.receive(field, isChallenge: response.status == (isOrigin ? 401 : 407))
            }
        }
        guard let end else { return true }
        return end.reason == .refused && !response.isComplete
    }
}

extension TransferFailure {
    /// `nil` for a login that the target has refused, which is a response.
    init?(_ end: NTLMWatch.End, for request: TransferRequest) {
        let place =
            switch (end.target, request.proxy) {
            case (.proxy, let proxy?): "the proxy at \(proxy.host), port \(proxy.port)"
            default: request.url.origin.text
            }
        switch end.reason {
        case .refused: return nil
        case .unusable(let problem):
            self.init(
                .malformedResponse,
                "cannot log in by NTLM to \(place): \(problem.reason), so the challenge was not answered; \(problem.advice)",
                cause: .ntlmChallengeUnusable)
        case .notContinued:
            self.init(
                .connectionLost,
                "cannot log in by NTLM to \(place): it does not continue the login on one connection; have it keep connections open (Connection: keep-alive), and look at what stands between",
                cause: .ntlmNotContinued)
        }
    }
}

extension NTLMChallenge.Problem {
    fileprivate var reason: String {
        switch self {
        case .malformed: "its challenge (type 2 message) is malformed"
        case .tooLong: "its challenge (type 2 message) is too long"
        case .noExtendedSecurity, .noTargetInformation:
            "its challenge (type 2 message) allows only LM and NTLMv1 responses, which reveal the password"
        }
    }

    fileprivate var advice: String {
        switch self {
        case .malformed, .tooLong: "use another scheme, or report it to whoever runs the server"
        case .noExtendedSecurity, .noTargetInformation:
            "have NTLMv2 enabled there, or use another scheme; if the server supports NTLMv2, somebody on the network may have changed its challenge"
        }
    }
}
