public import WatchwordProtocol

/// Recognizes an access token of the session without containing it, so that a timer keeps no copy of a token that was forgotten.
public struct TokenDigest: Sendable, Equatable {
    let origin: Origin
    private let hash: [UInt8]

    /// - Parameter origin: the origin of the server that the token is for.
    public init(_ token: Secret, for origin: Origin) {
        self.origin = origin
        hash = token.withUnsafeBytes { OAuthText.sha256($0) }
    }

    func matches(_ credential: LoginCredential) -> Bool {
        credential.form == .token && credential.secret.withUnsafeBytes { OAuthText.sha256($0) } == hash
    }
}
