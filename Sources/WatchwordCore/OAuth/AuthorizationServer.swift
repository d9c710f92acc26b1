internal import JSONText
internal import WatchwordProtocol

/// The metadata of an authorization server (RFC 8414 section 2).
struct AuthorizationServer: Sendable, Equatable {
    /// The issuer identifier, as the configuration or the resource names it.
    let issuer: String
    let authorization: FetchURL?
    let token: FetchURL?
    let device: FetchURL?
    let revocation: FetchURL?
    let registration: FetchURL?
    /// Whether the server announces `iss` in its redirects (RFC 9207 section 3).
    let sendsIssuer: Bool
    /// Whether the secret of a client is sent in the body, because the server does not accept it in a header field.
    let takesSecretInBody: Bool
    /// Whether the server offers to bind tokens to a key for ES256 (RFC 9449 section 5.1).
    let offersDPoP: Bool

    /// Checks the metadata that was fetched for `issuer`.
    /// - Throws: `FetchFailure` of kind `loginFailed`.
    init(_ body: [UInt8], for issuer: String) throws(FetchFailure) {
        guard let json = OAuthDocument.parse(body) else {
            throw .login(at: issuer, "its metadata is not a JSON object, or too large")
        }
        // guard: oauth-issuer
        guard let named = json["issuer"]?.string, Self.isSame(named, issuer) else {
            throw .login(
                at: issuer,
                "its metadata names another issuer, \((json["issuer"]?.string ?? "none").shortened); "
                    + "correct issuer in the configuration")
        }
        self.issuer = issuer
        let methods = json.strings("code_challenge_methods_supported")
        guard methods.isEmpty || methods.contains("S256") else {
            throw .login(at: issuer, "it does not support PKCE with S256 (RFC 7636)")
        }
        authorization = try Self.endpoint(json["authorization_endpoint"], issuer)
        token = try Self.endpoint(json["token_endpoint"], issuer)
        device = try Self.endpoint(json["device_authorization_endpoint"], issuer)
        revocation = try Self.endpoint(json["revocation_endpoint"], issuer)
        registration = try Self.endpoint(json["registration_endpoint"], issuer)
        sendsIssuer = json["authorization_response_iss_parameter_supported"]?.boolean ?? false
        let secrets = json.strings("token_endpoint_auth_methods_supported")
        takesSecretInBody = secrets.contains("client_secret_post") && !secrets.contains("client_secret_basic")
        offersDPoP = json.strings("dpop_signing_alg_values_supported").contains("ES256")
    }

    /// Whether both issuers are the same, byte for byte (RFC 8414 section 3.3), apart from an empty path.
    static func isSame(_ left: String, _ right: String) -> Bool {
        func withoutEmptyPath(_ text: String) -> String {
            text.hasSuffix("/") && text.utf8.count { $0 == UInt8(ascii: "/") } == 3 ? String(text.dropLast()) : text
        }
        return withoutEmptyPath(left).utf8.elementsEqual(withoutEmptyPath(right).utf8)
    }

    private static func endpoint(_ json: JSON?, _ issuer: String) throws(FetchFailure) -> FetchURL? {
        guard let text = json?.string else { return nil }
        guard let url = try? FetchURL(text), (try? FetchURL(issuer)).map(url.mayBeNamed) ?? false else {
            throw .login(at: issuer, "its metadata contains an endpoint that is not a URL with https")
        }
        return url
    }

    /// - Throws: `FetchFailure` if the server has no such endpoint.
    func required(_ endpoint: KeyPath<Self, FetchURL?>, _ name: String) throws(FetchFailure) -> FetchURL {
        guard let url = self[keyPath: endpoint] else {
            throw .login(at: issuer, "its metadata names no \(name) endpoint")
        }
        return url
    }
}
