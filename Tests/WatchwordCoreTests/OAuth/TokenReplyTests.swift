import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Replies of token endpoints: RFC 6749 sections 5.1 and 5.2, RFC 6750.
@Suite struct TokenReplyTests {
    private func read(_ json: JSON?, status: Int = 200) throws -> TokenReply {
        try TokenReply(reply(json, status: status), from: "https://as.example")
    }

    private func token(_ change: JSON = [:]) throws -> IssuedToken {
        guard case .token(let token) = try read((["access_token": "t"] as JSON).adding(change)) else {
            throw FetchFailure.unexpectedEvent
        }
        return token
    }

    // MARK: Errors

    @Test(arguments: [
        (400, "invalid_grant"), (401, "invalid_client"), (403, "invalid_code"), (400, "authorization_pending"),
        // Some servers report errors with status 200.
        (200, "slow_down"),
    ])
    func anErrorHasACode(status: Int, code: String) throws {
        #expect(try read(["error": .string(code), "access_token": "t"], status: status) == .refused(code: code))
    }

    @Test func someServersDoNotSayWhy() throws {
        #expect(try read(nil, status: 400) == .refused(code: ""))
        #expect(try read(["error": 1], status: 403) == .refused(code: ""))
    }

    @Test("A server out of order decides nothing, whatever it sends", arguments: [429, 500, 502, 503, 599])
    func aServerOutOfOrderDecidesNothing(status: Int) throws {
        #expect(try read(["error": "invalid_grant"], status: status) == .unavailable(status: status))
        #expect(try read(["access_token": "t"], status: status) == .unavailable(status: status))
    }

    @Test("Rule K7: redirects of a token endpoint are failures", arguments: [301, 302, 303, 307, 308, 204, 304, 100])
    func redirectsAreFailures(status: Int) {
        #expect(failure { _ = try read(["access_token": "t"], status: status) }?.kind == .loginFailed)
    }

    @Test func aReplyThatIsNoObjectIsAFailure() {
        for body in ["", "[]", "access_token=t", "{\"access_token\":\"t\""] {
            let found = failure {
                _ = try TokenReply(OAuthReply(status: 200, body: Array(body.utf8)), from: "https://as.example")
            }
            #expect(found?.kind == .loginFailed, "\(body)")
        }
    }

    // MARK: Tokens

    @Test func onlyTheTokenIsRequired() throws {
        let token = try token()
        #expect(token.access == secret("t") && !token.isBound && token.refresh == nil)
        #expect(token.lifetime == nil && token.scopes == nil && token.identity == nil)
    }

    @Test func theServicesOfRegistriesNameItToken() throws {
        #expect(try read(["token": "a"]) == .token(IssuedToken(["access_token": "a"], from: "")))
        guard case .token(let both) = try read(["token": "a", "access_token": "b"]) else {
            throw FetchFailure.unexpectedEvent
        }
        #expect(both.access == secret("b"))
    }

    @Test(
        "A token that cannot be a header field is refused",
        arguments: ["", " ", "a b", "a\r\nHost: evil", "a\tb", "a\u{7f}", "\u{e9}", "a\"b", "a\u{0}"])
    func aTokenIsVisibleText(text: String) {
        #expect(failure { _ = try token(["access_token": .string(text)]) }?.kind == .loginFailed)
    }

    @Test func theLengthOfATokenIsLimited() throws {
        let longest = String(repeating: "t", count: Limits.tokenBytes)
        #expect(try token(["access_token": .string(longest)]).access.count == Limits.tokenBytes)
        #expect(throws: FetchFailure.self) { try token(["access_token": .string(longest + "t")]) }
        #expect(try token(["refresh_token": .string(longest + "t")]).refresh == nil)
        #expect(try token(["refresh_token": ""]).refresh == nil)
    }

    @Test(arguments: [("Bearer", false), ("bearer", false), ("BEARER", false), ("DPoP", true), ("dpop", true)])
    func theTypeIgnoresCase(type: String, isBound: Bool) throws {
        #expect(try token(["token_type": .string(type)]).isBound == isBound)
    }

    @Test(arguments: ["mac", "", "N_A", "bearer ", "dpop2"])
    func unknownTypesAreRefused(type: String) {
        #expect(failure { _ = try token(["token_type": .string(type)]) }?.kind == .loginFailed)
    }

    @Test(arguments: [
        ("60", 60), ("\"60\"", 60), ("0", nil), ("-1", nil), ("99999999999", 366 * 24 * 3600),
        ("9223372036854775807", 366 * 24 * 3600), ("\"soon\"", nil), ("null", nil), ("[]", nil),
        ("1.5", nil), ("1e30", nil), ("true", nil), ("[3600]", nil),
    ])
    func aLifetimeIsANumberOrAText(text: String, seconds: Int?) throws {
        let json = try JSON.parse(Array("{\"expires_in\":\(text)}".utf8), limits: JSONLimits(depth: 4, values: 16))
        #expect(try token(json).lifetime == seconds.map { .seconds($0) })
    }

    @Test func grantedScopesAreWords() throws {
        #expect(try token(["scope": "write  read"]).scopes == ["write", "read"])
        #expect(try token(["scope": ""]).scopes == [], "nothing was granted")
    }

    // MARK: ID tokens

    private func identity(_ claims: JSON, parts: Int = 3) throws -> IdentityClaims? {
        let payload = OAuthText.base64URL(claims.serialized())
        let text = ["e30", payload, "c2ln"].prefix(parts).joined(separator: ".")
        return try token(["id_token": .string(text)]).identity
    }

    private let claims: JSON = ["iss": "https://as.example", "aud": "me", "exp": 2_000_000_001, "nonce": "n"]

    private func isAccepted(_ change: JSON, nonce: String? = "n") throws -> Bool {
        let server = try server()
        return try #require(try identity(claims.adding(change)))
            .isFor(server, client: "me", nonce: nonce, sinceEpoch: .seconds(2_000_000_000))
    }

    @Test func anIDTokenForThisLoginIsAccepted() throws {
        #expect(try isAccepted([:]))
        #expect(try isAccepted(["aud": ["other", "me"]]))
        #expect(try isAccepted(["iss": "https://as.example/"]))
    }

    @Test(
        "OpenID Connect Core section 3.1.3.7: an ID token for another login is refused",
        arguments: [
            ["iss": "https://evil.example"], ["iss": nil], ["aud": "you"], ["aud": []], ["aud": nil],
            ["nonce": "m"], ["nonce": nil], ["nonce": ""], ["exp": 2_000_000_000], ["exp": 1], ["exp": nil],
        ] as [[String: JSON?]])
    func anIDTokenForAnotherLoginIsRefused(change: [String: JSON?]) throws {
        let members = (claims.members ?? []).filter { change[$0.name] == nil }
        let changed = JSON.object(members.map { ($0.name, $0.value) } + change.map { ($0.key, $0.value) })
        let found = try #require(try identity(changed))
        let server = try server()
        #expect(!found.isFor(server, client: "me", nonce: "n", sinceEpoch: .seconds(2_000_000_000)))
    }

    @Test func whatIsNoIDTokenHasNoClaims() throws {
        #expect(try identity(claims, parts: 2) == nil)
        #expect(try token(["id_token": "a.%.c"]).identity == nil)
        #expect(try token(["id_token": "a.e30.c.d"]).identity == nil)
        #expect(try token(["id_token": "a.WzFd.c"]).identity == nil, "a list")
    }
}
