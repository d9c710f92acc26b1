public import WatchwordProtocol

/// The place for which a table has tokens.
public struct ResourcePath: Sendable {
    public let resource: String
    public let origin: Origin
    public let path: ExactText

    /// `nil` if the resource is not a URL.
    public init?(_ resource: String) {
        guard let url = try? FetchURL(resource) else { return nil }
        (self.resource, origin, path) = (resource, url.origin, url.path)
    }

    /// The path; `nil` for a whole server.
    public var ownPath: ExactText? { path == "/" ? nil : path }

    /// The spaces of the tokens.
    public var pattern: SpacePattern {
        SpacePattern(
            scheme: origin.scheme.rawValue, host: origin.host, port: origin.port, authenticationMethod: .bearer)
    }
}

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
