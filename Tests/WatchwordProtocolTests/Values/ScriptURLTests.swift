import Testing

@testable import WatchwordProtocol

struct ScriptURLTests {
    @Test(arguments: [
        ("http://wpad/p.pac?a=@", true), ("https://[::1]:8/p", true), ("file:///etc/proxy.pac", true),
        ("http://bob:pw@h/p", false), ("http://bob@h", false), ("http://?bob@h/p", false), ("http:///p", false),
        ("ftp://h/p", false), ("file://h/p", false), ("http://h/p q", false), ("", false),
    ])
    func aURLHasAHostAndNoUser(text: String, isValid: Bool) {
        #expect(ScriptURL.isValid(text) == isValid)
    }

    @Test func aTokenIsNotShown() {
        #expect(ScriptURL.display("https://h:8/p.pac?token=secret") == "https://h:8/p.pac")
        #expect(ScriptURL.display("file:///etc/proxy.pac#secret") == "file:///etc/proxy.pac")
    }

    @Test(arguments: [
        ("http://wpad/p", true), ("http://[2001:db8::1]:8/p", true), ("http://localhost.example/p", true),
        ("http://127.0.0.1:8/p", false), ("http://localhost/p", false), ("http://[::1]:8/p", false),
        ("https://wpad/p", false), ("file:///p", false),
    ])
    func onlyPlainHTTPIsForgeable(url: String, isForgeable: Bool) {
        #expect(ScriptURL.isForgeable(url) == isForgeable)
    }
}
