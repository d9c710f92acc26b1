internal import JSONText
internal import WatchwordProtocol

/// The reply to a request for a token (RFC 6749 sections 5.1 and 5.2).
enum TokenReply: Sendable, Equatable {
    case token(IssuedToken)
    /// The server's error code; empty if the reply contains none.
    case refused(code: String)
    /// The server has not decided: it is overloaded or broken.
    case unavailable(status: Int)

    /// - Throws: `FetchFailure` of kind `loginFailed` if the token cannot be used.
    init(_ reply: OAuthReply, from issuer: String) throws(FetchFailure) {
        if reply.status == 429 || reply.status >= 500 {
            self = .unavailable(status: reply.status)
            return
        }
        let json = OAuthDocument.parse(reply.body)
        guard reply.status == 200 else {
            // A redirect is not followed: it would send codes and tokens elsewhere (RFC 9700 section 4.12).
            guard (400..<500).contains(reply.status) else {
                throw .login(at: issuer, "its token endpoint answered with status \(reply.status)")
            }
            self = .refused(code: json?["error"]?.string ?? "")
            return
        }
        guard let json else { throw .login(at: issuer, "its reply is not a JSON object, or too large") }
        // Some servers report errors with status 200.
        if let code = json["error"]?.string {
            self = .refused(code: code)
        } else {
            self = .token(try IssuedToken(json, from: issuer))
        }
    }
}

/// A token and what belongs to it.
struct IssuedToken: Sendable, Equatable {
    let access: Secret
    /// Whether the token is bound to the key of the broker (RFC 9449 section 5).
    let isBound: Bool
    let refresh: Secret?
    /// The lifetime; `nil` if the server has named none, or none that can pass: such a token is used until it is refused.
    let lifetime: Duration?
    /// The granted scopes; `nil` if they are those that were requested.
    let scopes: [String]?
    /// The payload of the ID token (OpenID Connect Core 1.0 section 2), if there is one. It comes from the server itself by
    /// TLS, so that its signature is not checked (section 3.1.3.7).
    let identity: IdentityClaims?

    private static let longestLifetime = 366 * 24 * 3600

    init(_ json: JSON, from issuer: String) throws(FetchFailure) {
        // The token services of registries use `token`.
        guard let access = json.secret("access_token") ?? json.secret("token"), !access.isEmpty,
            access.count <= Limits.tokenBytes,
            // guard: oauth-token-text
            access.withUnsafeBytes({ $0.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 } })
        else { throw .login(at: issuer, "it sent no token, or one that cannot be a header field") }
        // The token services of registries name no type.
        let type = json["token_type"].map { $0.string?.asciiLowercased ?? "" } ?? "bearer"
        guard ["bearer", "dpop"].contains(type) else {  // guard: oauth-token-type
            throw .login(at: issuer, "it sent a token of the unknown type \(type.shortened)")
        }
        self.access = access
        isBound = type == "dpop"
        refresh = json.secret("refresh_token").flatMap { $0.isEmpty || $0.count > Limits.tokenBytes ? nil : $0 }
        lifetime = json["expires_in"].flatMap { $0.integer ?? $0.string.flatMap { Int($0) } }
            .flatMap { $0 > 0 ? .seconds(min($0, Self.longestLifetime)) : nil }
        scopes = json["scope"]?.string.map { $0.split(separator: " ").map(String.init) }
        identity = json["id_token"]?.withUTF8(IdentityClaims.init) ?? nil
    }
}

/// The claims of an ID token that are checked.
struct IdentityClaims: Sendable, Equatable {
    let issuer: String?
    let audience: [String]
    let expiry: Int?
    let nonce: String?

    init?(_ token: UnsafeRawBufferPointer) {
        let parts = token.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = OAuthText.decodeBase64URL(parts[1]),
            let json = OAuthDocument.parse(payload)
        else { return nil }
        issuer = json["iss"]?.string
        audience = json["aud"]?.string.map { [$0] } ?? json.strings("aud")
        expiry = json["exp"]?.integer
        nonce = json["nonce"]?.string
    }

    /// Whether the token is for this login (OpenID Connect Core 1.0 section 3.1.3.7).
    func isFor(_ server: AuthorizationServer, client: String, nonce: String?, sinceEpoch: Duration) -> Bool {
        issuer.map { AuthorizationServer.isSame($0, server.issuer) } ?? false
            && audience.contains(client) && self.nonce == nonce
            && expiry.map { .seconds($0) > sinceEpoch } ?? false  // guard: oauth-id-token
    }
}
