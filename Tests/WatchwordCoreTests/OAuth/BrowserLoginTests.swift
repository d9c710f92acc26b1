import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The authorization request and its redirect: RFC 6749 section 4.1, RFC 7636, RFC 8252, RFC 8707, RFC 9207.
@Suite struct BrowserLoginTests {
    private func login(
        _ change: JSON = [:], scopes: [String] = ["read", "write"], resource: String? = "https://api.example/v1"
    ) throws -> BrowserLogin {
        try BrowserLogin(
            server(change), OAuthClient(id: "me", secret: nil), scopes: scopes, resource: resource, at: "127.0.0.1:7777"
        )
    }

    private func parameters(_ login: BrowserLogin) throws -> [String: String] {
        let query = try #require(login.page.split(separator: "?", maxSplits: 1).last)
        return try #require(OAuthText.query(String(query)))
    }

    private func callback(_ login: BrowserLogin, _ rest: String) throws -> BrowserLogin.Visit {
        login.visit("/callback?state=\(try parameters(login)["state"] ?? "")&\(rest)")
    }

    // MARK: The request

    @Test("Rule K8: the login page has the parameters of the login, with S256")
    func theLoginPageHasTheParametersOfTheLogin() throws {
        let login = try login()
        let found = try parameters(login)
        #expect(login.page.hasPrefix("https://as.example/auth?"))
        #expect(found["response_type"] == "code" && found["client_id"] == "me" && found["scope"] == "read write")
        #expect(found["redirect_uri"] == "http://127.0.0.1:7777/callback")
        #expect(found["resource"] == "https://api.example/v1")
        #expect(found["code_challenge_method"] == "S256")
        #expect(found["code_challenge"] == OAuthText.codeChallenge(of: login.verifier))
        #expect(found["state"]?.utf8.count == 43 && found["nonce"] == nil)
        #expect(!login.page.contains(login.verifier))
    }

    @Test func parametersThatAreUnknownAreLeftOut() throws {
        let found = try parameters(login(scopes: [], resource: nil))
        #expect(found["scope"] == nil && found["resource"] == nil)
    }

    @Test func withOpenIDThereIsANonce() throws {
        let login = try login(scopes: ["openid"])
        #expect(try parameters(login)["nonce"] == login.nonce && login.nonce != nil)
    }

    @Test func aQueryOfTheEndpointIsKept() throws {
        let page = try login(["authorization_endpoint": "https://as.example/auth?tenant=1"]).page
        #expect(page.hasPrefix("https://as.example/auth?tenant=1&response_type=code&"))
    }

    @Test func theAddressToOpenHidesTheParameters() throws {
        let login = try login()
        #expect(login.startPath.hasPrefix("/start/"))
        for secret in [try parameters(login)["state"] ?? "", login.verifier] {
            #expect(!login.startPath.contains(secret))
        }
    }

    @Test func eachLoginHasValuesOfItsOwn() throws {
        let logins = try (0..<2).map { _ in try login(scopes: ["openid"]) }
        for value in [\BrowserLogin.startPath, \.verifier, \.page] {
            #expect(logins[0][keyPath: value] != logins[1][keyPath: value])
        }
        #expect(try parameters(logins[0])["state"] != parameters(logins[1])["state"])
        #expect(logins[0].nonce != logins[1].nonce)
    }

    @Test func aServerWithoutAPageIsAFailure() {
        #expect(failure { _ = try login(["authorization_endpoint": .null]) }?.kind == .loginFailed)
    }

    @Test func theCodeIsRedeemedWithTheVerifier() throws {
        let login = try login()
        let request = try login.request(for: secret("c&d"), resource: "https://api.example/v1")
        #expect(request.url.text == "https://as.example/token")
        #expect(
            request.form == [
                "grant_type": "authorization_code", "code": "c&d", "redirect_uri": "http://127.0.0.1:7777/callback",
                "code_verifier": login.verifier, "client_id": "me", "resource": "https://api.example/v1",
            ])
    }

    // MARK: Visits

    @Test func theStartPageLeadsToTheServer() throws {
        let login = try login()
        #expect(login.visit(login.startPath) == .start)
        #expect(login.visit("\(login.startPath)?x") == .start)
        #expect(login.visit("/start/") == .stray)
        #expect(login.visit(login.startPath + "x") == .stray)
    }

    @Test func theRedirectHasACode() throws {
        #expect(try callback(login(), "code=c%2Fd&session_state=x") == .code(secret("c/d")))
    }

    @Test("Rule K8: without the state of this login nothing is read")
    func withoutTheStateOfThisLoginNothingIsRead() throws {
        let login = try login()
        let state = try parameters(login)["state"] ?? ""
        let other = try parameters(self.login())["state"] ?? ""
        for target in [
            "/callback?code=c", "/callback?state=&code=c", "/callback?state=\(other)&code=c", "/callback", "/callback?",
            "/callback?state=\(state.dropLast())&code=c", "/callback?state=\(state)x&code=c",
            "/callback?state=\(other)&error=access_denied", "/callback?State=\(state)&code=c",
        ] {
            #expect(login.visit(target) == .stray, "\(target)")
        }
    }

    @Test func otherRequestsAreStray() throws {
        let login = try login()
        let state = try parameters(login)["state"] ?? ""
        for target in [
            "/", "/favicon.ico", "/callback/?state=\(state)&code=c", "/x/callback?state=\(state)&code=c",
            "/Callback?state=\(state)&code=c", "*", "",
        ] {
            #expect(login.visit(target) == .stray, "\(target)")
        }
    }

    @Test(
        "RFC 6749 section 3.1: a parameter that occurs twice makes the redirect invalid",
        arguments: [
            "code=c&code=c", "code=c&code=d", "code=c&state=x", "code=c&iss=https://as.example&iss=x", "code=%0a",
        ])
    func aParameterThatOccursTwice(rest: String) throws {
        #expect(try callback(login(), rest) == .stray)
    }

    @Test(arguments: ["error=access_denied", "error=access_denied&code=c"])
    func anErrorIsARefusal(rest: String) throws {
        #expect(try callback(login(), rest) == .refused("access_denied"))
    }

    @Test(arguments: ["", "code=", "access_token=t"])
    func aRedirectWithoutACodeIsARefusal(rest: String) throws {
        #expect(try callback(login(), rest) == .refused("invalid_response"))
    }

    @Test(
        "Rule K8: an answer of another server is dropped, announced or not", arguments: [true, false],
        ["https://evil.example", "", "https://as.example/x", "https://as.example.evil.example"])
    func anAnswerOfAnotherServerIsDropped(isAnnounced: Bool, issuer: String) throws {
        let login = try login(["authorization_response_iss_parameter_supported": .boolean(isAnnounced)])
        #expect(try callback(login, "code=c&iss=\(issuer)") == .wrongIssuer)
        #expect(try callback(login, "error=access_denied&iss=\(issuer)") == .wrongIssuer)
        #expect(try callback(login, "code=c&iss=https%3A%2F%2Fas.example") == .code(secret("c")))
    }

    @Test("Rule K8: a server that announces its name sends it")
    func aServerThatAnnouncesItsNameSendsIt() throws {
        let login = try login(["authorization_response_iss_parameter_supported": true])
        #expect(try callback(login, "code=c") == .wrongIssuer)
    }
}
