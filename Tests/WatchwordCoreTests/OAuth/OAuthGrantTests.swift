import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Grants in the keyring, and their end at the server (RFC 7009).
@Suite struct OAuthGrantTests {
    private func stored(_ grant: OAuthGrant, change: (inout KeyringItem) -> Void = { _ in }) -> KeyringItem {
        var item = KeyringItem(
            id: "/items/1", label: grant.label, attributes: OAuthGrant.attributes(of: grant.key), secret: grant.secret,
            isLocked: false)
        change(&item)
        return item
    }

    // MARK: The keyring

    @Test func aGrantIsReadAsItWasStored() throws {
        let plain = grant("r\u{e9}\"1", ["read", "write"]) { $0.denied = ["admin"] }
        #expect(OAuthGrant(stored(plain)) == plain)
        let full = grant {
            $0.registered = OAuthClient(id: "auto", secret: secret("s"))
            $0.proofKey = ProofKey.make()
        }
        let read = try #require(OAuthGrant(stored(full)))
        #expect(read == full && read.proofKey != nil)
        let isPublic = grant { $0.registered = OAuthClient(id: "auto", secret: nil) }
        #expect(OAuthGrant(stored(isPublic)) == isPublic)
    }

    @Test func theAccessTokenIsNotStored() {
        let held = grant { $0.access = secret("access-token") }
        #expect(!held.secret.revealed.contains("access-token"))
        #expect(OAuthGrant(stored(held))?.access == nil)
    }

    @Test("Attributes and label are readable while the keyring is locked, and contain no secret")
    func attributesContainNoSecret() {
        let held = grant("refresh-secret") {
            $0.registered = OAuthClient(id: "auto", secret: secret("client-secret"))
        }
        let shown = OAuthGrant.attributes(of: held.key).map { "\($0)=\($1)" }.joined() + held.label
        #expect(!shown.contains("-secret"))
        let attributes = OAuthGrant.attributes(of: held.key)
        #expect(OAuthGrant.query.allSatisfy { attributes[$0.key] == $0.value })
    }

    @Test func eachPurposeHasAGrantOfItsOwn() {
        let keys = [("a", "i", "c"), ("b", "i", "c"), ("a", "j", "c"), ("a", "i", "d")]
            .map { OAuthGrant.Key(resource: $0, issuer: $1, clientID: $2) }
        #expect(Set(keys.map(OAuthGrant.attributes)).count == keys.count)
    }

    @Test func whatIsNoGrantIsNotRead() {
        let whole = grant()
        #expect(OAuthGrant(stored(whole)) != nil)
        #expect(OAuthGrant(stored(whole) { $0.secret = nil }) == nil, "locked")
        for name: ExactText in ["watchword-grant", "resource", "issuer", "client-id"] {
            #expect(OAuthGrant(stored(whole) { $0.attributes[name] = nil }) == nil, "\(name)")
        }
        #expect(OAuthGrant(stored(whole) { $0.attributes["watchword-grant"] = "2" }) == nil)
        for text in ["", "{}", "[]", "{\"refreshToken\":\"\"}", "{\"refreshToken\":1}", "password"] {
            #expect(OAuthGrant(stored(whole) { $0.secret = secret(text) }) == nil, "\(text)")
        }
    }

    @Test func aGrantWithAnUnusableKeyIsReadWithoutIt() {
        let item = stored(grant()) { $0.secret = secret("{\"refreshToken\":\"r\",\"key\":\"AAAA\"}") }
        #expect(OAuthGrant(item)?.refresh == secret("r") && OAuthGrant(item)?.proofKey == nil)
    }

    @Test func aLockedItemNamesItsGrant() {
        let item = stored(grant()) { ($0.secret, $0.isLocked) = (nil, true) }
        #expect(OAuthGrant(item) == nil && OAuthGrant.Key(item) == grant().key)
    }

    @Test func aGrantIsForTheURLsOfItsResource() throws {
        let place = try #require(ResourcePath(grant().key.resource))
        #expect(place.path == "/v1" && place.ownPath == "/v1")
        #expect(place.pattern.host == "api.example" && place.pattern.port == 443)
        #expect(place.pattern.authenticationMethod == .bearer)
        #expect(ResourcePath("https://api.example")?.ownPath == .some(nil))
        #expect(ResourcePath("no URL") == nil)
    }

    // MARK: Revocation

    private var metadata: Result<OAuthReply, FetchFailure> { .success(reply(serverMetadata)) }
    private let done: Result<OAuthReply, FetchFailure> = .success(reply(nil))

    @Test("Rule 32: the refresh token is revoked first, then the access token")
    func theRefreshTokenIsRevokedFirst() throws {
        var revocation = OAuthGrantRevocation(grant { $0.access = secret("a") }, TokenRun.rule)
        #expect(revocation.start()?.url.text == "https://as.example/.well-known/oauth-authorization-server")
        let next = revocation.next(after: metadata)
        let first = try #require(next)
        #expect(first.url.text == "https://as.example/revoke")
        #expect(first.form == ["token": "r1", "token_type_hint": "refresh_token", "client_id": "me"])
        let second = revocation.next(after: .failure(FetchFailure(.cannotConnect, "")))
        #expect(second?.form == ["token": "a", "token_type_hint": "access_token", "client_id": "me"])
        #expect(revocation.next(after: done) == nil && revocation.next(after: done) == nil)
    }

    @Test func withoutAnAccessTokenThereIsOneRequest() {
        var revocation = OAuthGrantRevocation(grant(), TokenRun.rule)
        _ = revocation.start()
        #expect(revocation.next(after: metadata) != nil)
        #expect(revocation.next(after: done) == nil)
    }

    @Test func theMetadataAreSoughtAtEachPlace() {
        var revocation = OAuthGrantRevocation(grant(), TokenRun.rule)
        _ = revocation.start()
        let missing = revocation.next(after: .success(reply(nil, status: 404)))
        #expect(missing?.url.text == "https://as.example/.well-known/openid-configuration")
        #expect(revocation.next(after: metadata)?.form["token"] == "r1")
    }

    @Test("Rule 32: a token is revoked at no server but its own")
    func aTokenIsSentToNoServerButItsOwn() {
        let foreign: JSON = ["issuer": "https://evil.example", "revocation_endpoint": "https://evil.example/revoke"]
        let insecure: JSON = ["revocation_endpoint": "http://as.example/revoke"]
        for change in [foreign, insecure, ["revocation_endpoint": .null]] {
            var revocation = OAuthGrantRevocation(grant(), TokenRun.rule)
            _ = revocation.start()
            #expect(revocation.next(after: .success(reply(serverMetadata.adding(change)))) == nil)
        }
    }

    @Test func withoutServerOrClientNothingIsRevoked() {
        let unnamed = OAuthGrant.Key(resource: "https://api.example/v1", issuer: "https://as.example", clientID: "")
        var withoutClient = OAuthGrantRevocation(
            OAuthGrant(unnamed, scopes: [], refresh: secret("r"), registered: nil), TokenRun.rule)
        #expect(withoutClient.start() == nil)
        // The client of the login, also without its table.
        var withoutRule = OAuthGrantRevocation(grant(), nil)
        #expect(withoutRule.start() != nil && withoutRule.next(after: metadata)?.form["client_id"] == "me")
        var registered = OAuthGrantRevocation(grant { $0.registered = OAuthClient(id: "auto", secret: nil) }, nil)
        #expect(registered.start() != nil)
        #expect(registered.next(after: metadata)?.form["client_id"] == "auto")
        var unreachable = OAuthGrantRevocation(grant(), TokenRun.rule)
        _ = unreachable.start()
        #expect(unreachable.next(after: .failure(FetchFailure(.cannotConnect, ""))) == nil)
        let insecure = OAuthGrant.Key(resource: "https://api.example/v1", issuer: "http://as.example", clientID: "me")
        var plain = OAuthGrantRevocation(
            OAuthGrant(insecure, scopes: [], refresh: secret("r"), registered: nil), TokenRun.rule)
        #expect(plain.start() == nil)
    }
}
