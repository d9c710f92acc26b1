internal import JSONText
internal import WatchwordProtocol

/// Revokes the tokens of a grant at its server (RFC 7009), where that is possible. A failure changes nothing: the grant is
/// forgotten in any case.
public struct OAuthGrantRevocation: Sendable {
    private enum State {
        case findingServer(next: [FetchURL])
        case revoking(rest: [OAuthRequest])
    }

    private let grant: OAuthGrant
    private let client: OAuthClient?
    private var state = State.revoking(rest: [])

    /// - Parameter rule: the rule of the grant's resource, if there still is one.
    public init(_ grant: OAuthGrant, _ rule: OAuthRule?) {
        self.grant = grant
        client = grant.registered ?? Self.client(of: grant.key, rule)
    }

    /// The configuration may have changed since the login.
    private static func client(of key: OAuthGrant.Key, _ rule: OAuthRule?) -> OAuthClient? {
        guard !key.clientID.isEmpty else { return nil }
        let isSame =
            rule?.clientID == key.clientID
            && rule?.issuer.map { AuthorizationServer.isSame($0, key.issuer) } ?? false
        return OAuthClient(id: key.clientID, secret: isSame ? rule?.clientSecret : nil)
    }

    /// Returns the first request; `nil` if nothing can be revoked.
    public mutating func start() -> OAuthRequest? {
        guard client != nil, let issuer = try? FetchURL(grant.key.issuer), issuer.isSecureEnough else { return nil }
        return find(at: WellKnown.serverMetadata(of: issuer))
    }

    private mutating func find(at places: [FetchURL]) -> OAuthRequest? {
        guard let first = places.first else { return nil }
        state = .findingServer(next: Array(places.dropFirst()))
        return OAuthRequest(document: first)
    }

    /// Returns the request after a reply; `nil` at the end.
    public mutating func next(after reply: Result<OAuthReply, FetchFailure>) -> OAuthRequest? {
        switch state {
        case .findingServer(let next):
            guard let reply = try? reply.get() else { return nil }
            if reply.status != 200 { return find(at: next) }
            let server = try? AuthorizationServer(reply.body, for: grant.key.issuer)
            guard let server, let client, let endpoint = server.revocation else { return nil }
            // The refresh token comes first, so that no new access token can be made (RFC 7009 section 2.1).
            let tokens = [("refresh_token", grant.refresh)] + (grant.access.map { [("access_token", $0)] } ?? [])
            return take(
                tokens.map { hint, token in
                    let form = [("token", token), ("token_type_hint", Secret(joining: [.text(hint)]))]
                    return OAuthRequest(endpoint, form: form, client: client, server)
                })
        case .revoking(let rest): return take(rest)
        }
    }

    private mutating func take(_ requests: [OAuthRequest]) -> OAuthRequest? {
        state = .revoking(rest: Array(requests.dropFirst()))
        return requests.first
    }
}
