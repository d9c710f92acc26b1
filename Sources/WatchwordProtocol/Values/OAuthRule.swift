/// How tokens for the URLs of one resource are obtained: a table `[oauth."URL"]` of the configuration.
public struct OAuthRule: Sendable, Equatable {
    /// The way in which a token is obtained.
    public enum Flow: String, Sendable, CaseIterable {
        /// Authorization code with PKCE and a redirect to the loopback interface (RFC 7636, RFC 8252).
        case browser
        /// Device authorization (RFC 8628): a person enters a code on any device.
        case device
        /// Client credentials (RFC 6749 section 4.4): no person is involved.
        case clientCredentials = "client-credentials"
        /// The token service of a container registry, named by `realm` in the challenge.
        case registry
    }

    /// The resource: the URLs with this scheme, host and port whose path is this one or below it. Without a trailing slash.
    public var resource: String
    /// The issuer identifier of the authorization server (RFC 8414 section 2), byte for byte; for `registry` the origin of the
    /// token service. `nil` to find it by `resource_metadata` (RFC 9728).
    public var issuer: String?
    /// The client id; `nil` only if `registersClient`.
    public var clientID: String?
    /// The secret of a confidential client.
    public var clientSecret: Secret?
    /// The scopes to request; empty for those that the challenge names.
    public var scopes: [String] = []
    /// `nil` for `browser`, or `device` if the server has no authorization endpoint.
    public var flow: Flow?
    /// The port of the redirect URI; `nil` for an ephemeral one.
    public var redirectPort: Int?
    /// The value of `resource` in requests for tokens (RFC 8707); `nil` for that of the resource's metadata, if there is any.
    public var resourceIndicator: String?
    /// Whether a client may be registered at the server (RFC 7591).
    public var registersClient = false
    /// Whether tokens are bound to a key of the broker (RFC 9449), where the server offers it.
    public var usesDPoP = true
    /// Whether tokens can be obtained: `false` if the file with the secret has a problem. Such a rule still matches its URLs, so
    /// that no rule for a shorter path applies to them.
    public var isUsable = true

    public init(resource: String) { self.resource = resource }
}
