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
