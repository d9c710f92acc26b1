internal import JSONText
internal import WatchwordProtocol

/// A login with a code on any device (RFC 8628).
struct DeviceLogin: Sendable {
    let server: AuthorizationServer
    let client: OAuthClient
    let code: Secret
    let userCode: String
    let url: String
    let completeURL: String?
    /// The monotonic time at which the code expires.
    let expiry: Duration
    /// The time between two requests for the token.
    private(set) var interval: Duration

    private static let defaultInterval = 5
    /// The longest time for which a code is shown.
    private static let longest = 3600

    /// Parses the reply of the device authorization endpoint (RFC 8628 section 3.2).
    init(_ server: AuthorizationServer, _ client: OAuthClient, _ reply: OAuthReply, now: Duration) throws(FetchFailure)
    {
        (self.server, self.client) = (server, client)
        let json = OAuthDocument.parse(reply.body)
        guard reply.status == 200, let json else {
            let code = json?["error"]?.string
            throw .login(
                at: server.issuer,
                "it gave no code for a device: \(code?.shortened ?? "status \(reply.status)"); check client-id and scopes"
            )
        }
        guard let code = json.secret("device_code"), !code.isEmpty, let userCode = json["user_code"]?.string,
            let page = Self.page(json["verification_uri"] ?? json["verification_url"], server),
            !userCode.isEmpty, userCode.utf8.count <= 64
        else { throw .login(at: server.issuer, "its reply contains no code for a device, or no page for it") }
        (self.code, self.userCode, url) = (code, userCode, page)
        completeURL = Self.page(json["verification_uri_complete"], server)
        expiry = now + .seconds(min(max(json["expires_in"]?.integer ?? Self.longest, 1), Self.longest))
        interval = .seconds(min(max(json["interval"]?.integer ?? Self.defaultInterval, 1), 60))
    }

    /// Returns the canonical URL of a page that a browser may open; `nil` for another scheme, or a malformed URL.
    private static func page(_ json: JSON?, _ server: AuthorizationServer) -> String? {
        guard let url = (json?.string).flatMap({ try? FetchURL($0) }), let issuer = try? FetchURL(server.issuer),
            url.mayBeNamed(by: issuer)
        else { return nil }
        return url.text
    }

    /// Waits longer from now on, because the server has asked for that (RFC 8628 section 3.5).
    mutating func slowDown() { interval += .seconds(5) }

    /// Waits longer, because the server cannot be reached (RFC 8628 section 3.5).
    mutating func backOff() { interval = min(interval * 2, .seconds(300)) }

    func request() throws(FetchFailure) -> OAuthRequest {
        let form = [
            ("grant_type", Secret(joining: [.text("urn:ietf:params:oauth:grant-type:device_code")])),
            ("device_code", code),
        ]
        return OAuthRequest(try server.required(\.token, "token"), form: form, client: client, server)
    }
}
