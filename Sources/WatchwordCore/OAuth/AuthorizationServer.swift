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

/// The metadata of a resource (RFC 9728 section 2).
struct ProtectedResource: Sendable, Equatable {
    /// The identifier, which is sent as `resource` (RFC 8707).
    let identifier: String
    let path: ExactText
    let issuer: String
    let scopes: [String]

    /// Checks the metadata for a request to `url`. The identifier has the origin of the request, and its path is that of the
    /// request or above it; RFC 9728 section 3.3 demands identity, which no request below the resource would meet.
    /// - Throws: `FetchFailure` of kind `loginFailed`.
    init(_ body: [UInt8], for url: FetchURL) throws(FetchFailure) {
        guard let json = OAuthDocument.parse(body), let text = json["resource"]?.string else {
            throw Self.failure(url, "is not a JSON object with a resource")
        }
        // guard: oauth-resource
        guard !text.contains("#"), let resource = try? FetchURL(text), resource.origin == url.origin,
            PathRange.path(resource.path, covers: url.path)
        else { throw Self.failure(url, "describes another resource, \(text.shortened)") }
        guard let issuer = json.strings("authorization_servers").first,
            let server = try? FetchURL(issuer), server.mayBeNamed(by: url)
        else { throw Self.failure(url, "names no authorization server with https") }
        (identifier, path, self.issuer) = (text, resource.path, issuer)
        scopes = json.strings("scopes_supported").filter(\.isScope)
    }

    private static func failure(_ url: FetchURL, _ text: String) -> FetchFailure {
        FetchFailure(.loginFailed, "cannot find out where to log in for \(url.origin.text): its metadata \(text)")
    }
}

/// The locations of metadata documents.
enum WellKnown {
    /// Returns where a resource may describe itself (RFC 9728 section 3.1), in the order in which they are tried: for its
    /// path, then for the whole server.
    static func resourceMetadata(of resource: FetchURL) -> [FetchURL] {
        let name = "oauth-protected-resource"
        let whole = FetchURL(origin: resource.origin, path: "/.well-known/\(ExactText(name))", query: nil)
        let own = insert(name, into: resource, query: resource.query)
        return own == whole ? [whole] : [own, whole]
    }

    /// Returns where a server may describe itself, in the order in which they are tried (RFC 8414 section 3.1, OpenID
    /// Connect Discovery 1.0 section 4).
    static func serverMetadata(of issuer: FetchURL) -> [FetchURL] {
        let openID = "openid-configuration"
        let appended = FetchURL(
            origin: issuer.origin, path: "\(path(of: issuer))/.well-known/\(ExactText(openID))", query: nil)
        let inserted = [insert("oauth-authorization-server", into: issuer), insert(openID, into: issuer)]
        return inserted.contains(appended) ? inserted : inserted + [appended]
    }

    private static func insert(_ name: String, into url: FetchURL, query: String? = nil) -> FetchURL {
        FetchURL(origin: url.origin, path: "/.well-known/\(ExactText(name))\(path(of: url))", query: query)
    }

    /// The path without one terminating slash.
    private static func path(of url: FetchURL) -> ExactText {
        url.path.hasSuffix("/") ? ExactText(url.path.string.dropLast()) : url.path
    }
}
