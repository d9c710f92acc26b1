internal import WatchwordCore
internal import WatchwordProtocol

/// Checks the NTLM messages from the targets of one transfer, and decides when libcurl must stop (SECURITY-RULES N8).
struct NTLMWatch {
    /// Why a login ended, and at which target.
    struct End: Equatable {
        let reason: NTLMAttempt.End
        let target: Handshake.Target
    }

    private var attempts: [(target: Handshake.Target, attempt: NTLMAttempt)]

    init(_ request: SharedRequest) {
        attempts = request.handshakes.filter { $0.scheme == .ntlm }.map { ($0.target, NTLMAttempt()) }
    }

    /// Why libcurl was stopped, if it was.
    var end: End? { first(\.end) }

    /// Why the login ended, after libcurl has finished by itself.
    var endOfTransfer: End? { first(\.endOfTransfer) }

    private func first(_ end: KeyPath<NTLMAttempt, NTLMAttempt.End?>) -> End? {
        for (target, attempt) in attempts {
            if let reason = attempt[keyPath: end] { return End(reason: reason, target: target) }
        }
        return nil
    }

    /// Records that libcurl opens a connection, and returns whether it may.
    mutating func connect() -> Bool {
        for index in attempts.indices { _ = attempts[index].attempt.connect() }
        return end == nil
    }

    /// Whether `outcome` leaves a connection in the middle of a login, which a later transfer would continue.
    func isUnfinished(after outcome: TransferPort.Outcome) -> Bool {
        guard !attempts.isEmpty else { return false }
        guard case .success(let response) = outcome else { return true }
        return [401, 407].contains(response.status)
    }

    /// Checks one line of a header section, which `response` already contains.
    /// - Returns: whether libcurl may continue. After a refusal it may read to the end of the section, so that the response
    ///   is complete; it answers a challenge only after that.
    mutating func receive(_ line: UnsafeRawBufferPointer, of response: ResponseHeaders) -> Bool {
        guard !attempts.isEmpty else { return true }
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
    /// `nil` if the target refused the login, which is a response and not a failure.
    init?(_ end: NTLMWatch.End, for request: SharedRequest) {
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
                "cannot log in with NTLM to \(place): \(problem.reason), so the challenge was not answered; \(problem.advice)",
                cause: .ntlmChallengeUnusable)
        case .notContinued:
            self.init(
                .connectionLost,
                "cannot log in with NTLM to \(place): it does not continue the login on the same connection; configure it for persistent connections (Connection: keep-alive), and check the proxies in between",
                cause: .ntlmNotContinued)
        }
    }
}

extension NTLMChallenge.Problem {
    fileprivate var reason: String {
        switch self {
        case .malformed: "its challenge (type 2 message) is malformed"
        case .tooLong: "its challenge (type 2 message) is too long"
        case .noExtendedSecurity:
            "its challenge (type 2 message) lacks the flag for extended session security, without which libcurl makes LM and NTLMv1 responses, which reveal the password, and none for NTLMv2"
        }
    }

    fileprivate var advice: String {
        switch self {
        case .malformed, .tooLong: "use another scheme, or report it to the server's administrator"
        case .noExtendedSecurity:
            "enable it there, or use another scheme; if the server usually sends it, someone on the network may have changed its challenge"
        }
    }
}
