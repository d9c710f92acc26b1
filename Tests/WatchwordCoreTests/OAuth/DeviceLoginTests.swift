import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Codes for any device: RFC 8628 sections 3.2 to 3.5.
@Suite struct DeviceLoginTests {
    private let code: JSON = [
        "device_code": "d", "user_code": "6JCH-NM15", "verification_uri": "https://as.example/device",
        "expires_in": 600,
    ]

    private func login(_ change: JSON = [:], status: Int = 200) throws -> DeviceLogin {
        try DeviceLogin(
            server(), OAuthClient(id: "me", secret: nil), reply(code.adding(change), status: status),
            now: .seconds(100))
    }

    @Test func theReplyNamesCodeAndPage() throws {
        let found = try login(["verification_uri_complete": "https://as.example/device?code=6JCH-NM15"])
        #expect(found.userCode == "6JCH-NM15" && found.url == "https://as.example/device")
        #expect(found.completeURL == "https://as.example/device?code=6JCH-NM15")
        #expect(found.expiry == .seconds(700) && found.interval == .seconds(5))
        #expect(try found.request().form["grant_type"] == "urn:ietf:params:oauth:grant-type:device_code")
        #expect(try found.request().form["device_code"] == "d" && found.request().form["client_id"] == "me")
    }

    @Test func someServersNameThePageURL() throws {
        let code: JSON = ["device_code": "d", "user_code": "u", "verification_url": "https://g.example/"]
        let client = OAuthClient(id: "me", secret: nil)
        #expect(try DeviceLogin(server(), client, reply(code), now: .zero).url == "https://g.example/")
    }

    @Test(arguments: [("interval", 0, 1), ("interval", -5, 1), ("interval", 30, 30), ("interval", 9999, 60)])
    func theIntervalIsBounded(name: String, value: Int, seconds: Int) throws {
        #expect(try login(.object([(name, .integer(value))])).interval == .seconds(seconds))
    }

    @Test(arguments: [(0, 1), (-1, 1), (60, 60), (99999, 3600), (Int.max, 3600)])
    func theLifetimeIsBounded(value: Int, seconds: Int) throws {
        #expect(try login(["expires_in": .integer(value)]).expiry == .seconds(100 + seconds))
    }

    @Test("RFC 8628 section 3.5: slow_down adds five seconds to each later wait, a failed request doubles it")
    func theIntervalGrows() throws {
        var login = try login(["interval": 2])
        login.slowDown()
        #expect(login.interval == .seconds(7))
        login.slowDown()
        #expect(login.interval == .seconds(12))
        login.backOff()
        #expect(login.interval == .seconds(24))
        for _ in 0..<9 { login.backOff() }
        #expect(login.interval == .seconds(300))
    }

    @Test(
        arguments: [
            ["device_code": ""], ["device_code": .null], ["user_code": ""], ["user_code": .null],
            ["user_code": .string(String(repeating: "x", count: 65))], ["verification_uri": .null],
            ["verification_uri": "http://as.example/device"], ["verification_uri": "javascript:alert(1)"],
            ["verification_uri": "-x"], ["verification_uri": ""], ["verification_uri": "https://"],
            ["verification_uri": "//h/x"], ["verification_uri": "https://a b/"],
            ["verification_uri": "file:///etc/passwd"], ["verification_uri": "data:text/html,x"],
            ["verification_uri": "http://192.0.2.1/device"],
            ["verification_uri": "https://as.example/\u{1b}[2J"], ["verification_uri": "https://user:pw@as.example/"],
            ["verification_uri": 5], ["verification_uri": ["https://as.example/"]],
            // What a terminal would obey.
            ["user_code": "AB\u{1b}[2JCD"], ["user_code": "AB\r\nCD"], ["user_code": "AB\u{0}"],
            ["user_code": "AB\u{202e}CD"], ["user_code": "AB\u{7}"],
        ] as [JSON])
    func aReplyWithoutCodeOrPageIsAFailure(change: JSON) {
        #expect(failure { _ = try login(change) }?.kind == .loginFailed)
    }

    @Test func aPageThatCannotBeOpenedIsNotOffered() throws {
        #expect(try login(["verification_uri_complete": "file:///etc/passwd"]).completeURL == nil)
        #expect(try login(["verification_uri_complete": "http://as.example/device?c"]).completeURL == nil)
    }

    @Test func aRefusalSaysWhy() {
        let refused = failure { _ = try login(["error": "unauthorized_client"], status: 400) }
        #expect(refused?.kind == .loginFailed && refused?.text.contains("unauthorized_client") == true)
        #expect(failure { _ = try login(status: 500) }?.text.contains("status 500") == true)
    }
}
