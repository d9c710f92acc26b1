internal import WatchwordProtocol

/// Fetches of clients that get nothing of the user's.
extension FetchMachine {
    /// A file or a token is the user's, whoever names it; what a client brings along as text is its own.
    mutating func foreignCertificate(_ context: inout FetchContext) -> FetchStep? {
        guard case .certificate(let own, let source) = outgoing.certificate,
            plan.isRestricted || !plan.mayNameFiles && source != .agent && source != .session
        else { return nil }
        let isText = ([own.certificate] + [own.privateKey].compactMap(\.self)).allSatisfy(\.isPEM)
        if isText { return nil }
        let text =
            "A client on the restricted socket, or in a sandbox, gives a certificate and its key as PEM text, and not as a file or a token."
        return fail(FetchFailure(.denied, text), &context)
    }
}

extension Secret {
    fileprivate var isPEM: Bool { withUnsafeBytes { $0.starts(with: "-----BEGIN ".utf8) } }
}
