import JSONText
import Testing
import WatchwordProtocol

@Suite struct TokenLoginTests {
    private static let browser = TokenLogin(
        issuer: "https://login.example", clientID: "watchword", scopes: ["read", "write"],
        url: "http://127.0.0.1:46131/5d41", device: nil, expiresAt: .milliseconds(1_795_636_800_250))

    private static func device(_ completeURL: String?) -> TokenLogin {
        var login = browser
        login.url = "https://login.example/device"
        login.device = .init(userCode: "WDJB-MJHT", completeURL: completeURL)
        return login
    }

    @Test(arguments: [browser, device(nil), device("https://login.example/device?user_code=WDJB-MJHT")])
    func aLoginIsReadAsItWasWritten(login: TokenLogin) {
        #expect(TokenLogin(login.json) == login)
    }

    @Test func theMembersOfTheFlows() {
        let names = Self.browser.json.members?.map(\.name)
        #expect(names?.contains("userCode") == false && names?.contains("completeUrl") == false)
        #expect(Self.browser.json["flow"]?.string == "browser")
        #expect(Self.browser.json["expiresAt"]?.string == "2026-11-25T20:00:00.250Z")
        #expect(Self.device(nil).json["flow"]?.string == "device")
        #expect(Self.device(nil).json["userCode"]?.string == "WDJB-MJHT")
    }

    @Test(
        arguments: [
            ("flow", "ofTomorrow"), ("userCode", nil), ("issuer", nil), ("clientId", nil), ("scopes", "read"),
            ("url", nil), ("expiresAt", "soon"),
        ] as [(String, JSON?)]) func aMalformedLoginIsNone(name: String, value: JSON?)
    {
        #expect(TokenLogin(Self.device(nil).json.adding([name: value ?? .null])) == nil)
    }
}
