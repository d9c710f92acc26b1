internal import WatchwordProtocol

/// A login in a browser: authorization code with PKCE and a redirect to the loopback interface (RFC 7636, RFC 8252).
struct BrowserLogin: Sendable {
    let server: AuthorizationServer
    let client: OAuthClient
    /// The address to open. It hides the parameters of the login from the argument list of the browser.
    let startPath = "/start/\(OAuthText.makeRandom())"
    /// The authorization endpoint with the parameters of this login.
    let page: String
    let redirectURI: String
    let verifier = OAuthText.makeRandom()
    let nonce: String?
    private let state = OAuthText.makeRandom()
    /// Whether a browser has opened the address. Other programs may see it, in the argument list of the browser.
    var hasStarted = false

    private static let callbackPath = "/callback"

    /// - Parameter address: the host and port of the listener.
    init(
        _ server: AuthorizationServer, _ client: OAuthClient, scopes: [String], resource: String?, at address: String
    ) throws(FetchFailure) {
        (self.server, self.client) = (server, client)
        let endpoint = try server.required(\.authorization, "authorization")
        redirectURI = "http://\(address)\(Self.callbackPath)"
        nonce = scopes.contains("openid") ? OAuthText.makeRandom() : nil
        var parameters = [
            ("response_type", "code"), ("client_id", client.id), ("redirect_uri", redirectURI), ("state", state),
            ("code_challenge", OAuthText.codeChallenge(of: verifier)), ("code_challenge_method", "S256"),
        ]
        if !scopes.isEmpty { parameters.append(("scope", scopes.joined(separator: " "))) }
        if let resource { parameters.append(("resource", resource)) }
        if let nonce { parameters.append(("nonce", nonce)) }
        let query = parameters.map { "\($0)=\(OAuthText.formEncoded($1))" }.joined(separator: "&")
        page = "\(endpoint.text)\(endpoint.query == nil ? "?" : "&")\(query)"
    }

    /// The meaning of a request of the browser.
    enum Visit: Equatable {
        /// Send the browser to `page`.
        case start
        case code(Secret)
        /// The server has refused the login, with this error code.
        case refused(String)
        /// The redirect does not come from this server, although it has the right state.
        case wrongIssuer
        /// The request has nothing to do with the login.
        case stray
    }

    func visit(_ target: String) -> Visit {
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let path = String(parts[0])
        if Self.isSame(path, startPath) { return .start }
        guard path == Self.callbackPath, parts.count == 2,
            let fields = OAuthText.query(String(parts[1]), ["state", "iss", "code", "error"]),
            Self.isSame(fields["state"] ?? "", state)  // guard: oauth-state
        else { return .stray }
        // RFC 9207 section 2.4. Checked also if it is not announced.
        if let issuer = fields["iss"] {
            guard AuthorizationServer.isSame(issuer, server.issuer) else { return .wrongIssuer }  // guard: oauth-mix-up
        } else if server.sendsIssuer {
            return .wrongIssuer  // guard: oauth-issuer-missing
        }
        if let error = fields["error"] { return .refused(error) }
        guard let code = fields["code"], !code.isEmpty else { return .refused("invalid_response") }
        return .code(Secret(joining: [.text(code)]))
    }

    /// Compares in constant time.
    private static func isSame(_ left: String, _ right: String) -> Bool {
        Secret(joining: [.text(left)]) == Secret(joining: [.text(right)])
    }

    func request(for code: Secret, resource: String?) throws(FetchFailure) -> OAuthRequest {
        func text(_ value: String) -> Secret { Secret(joining: [.text(value)]) }
        var form = [
            ("grant_type", text("authorization_code")), ("code", code), ("redirect_uri", text(redirectURI)),
            ("code_verifier", text(verifier)),
        ]
        if let resource { form.append(("resource", text(resource))) }
        return OAuthRequest(try server.required(\.token, "token"), form: form, client: client, server)
    }
}
