internal import WatchwordCore
internal import WatchwordProtocol

/// The proofs expected in a response: that the server is the service of the Kerberos ticket, and that it knows the password
/// (Digest `rspauth`).
struct ServerProofs {
    private let login: NegotiateLogin?
    private let checks: [ProofCheck]

    init(_ request: SharedRequest, _ login: NegotiateLogin?) {
        self.login = login
        checks = request.proofs.map { $0.makeCheck() }
    }

    /// Adds bytes of the body to the checks, as they were received.
    func update(_ bytes: UnsafeRawBufferPointer) {
        for check in checks { check.update(bytes) }
    }

    func isLoginProven(by headers: ResponseHeaders) -> Bool { login?.isProven(by: headers) ?? true }

    /// Whether the Digest proofs, checked at the end of the body, are correct or missing. Challenges (401, 407) are not
    /// checked.
    func isBodyProven(by headers: ResponseHeaders) -> Bool {
        guard !checks.isEmpty, ![401, 407].contains(headers.status) else { return true }
        return checks.allSatisfy { $0.isRight(headers.fields, trailers: headers.trailers) }
    }
}
