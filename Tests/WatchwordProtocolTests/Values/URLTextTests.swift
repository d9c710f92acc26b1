import Testing
import WatchwordProtocol

struct URLTextTests {
    @Test(
        "Rule R18: user and password are removed from a URL when it is parsed",
        arguments: [
            ("http://bob:pw@host/", "http://host/", "bob:pw"), ("http://bob@host", "http://host", "bob"),
            ("http://@host/", "http://host/", ""), ("http://a@b@host/", "http://host/", "a@b"),
            ("http://b%40b:p%3Aw@host:81/x?y#z", "http://host:81/x?y#z", "b%40b:p%3Aw"), ("h://u@", "h://", "u"),
            ("HTTPS://u:p@[::1]:8443/", "HTTPS://[::1]:8443/", "u:p"),
        ])
    func userInformationIsTakenOut(text: String, url: String, userInfo: String) {
        let parts = split(text)
        #expect(parts.url == url)
        #expect(parts.userInfo == userInfo)
    }

    @Test(arguments: [
        "http://host/", "http://host/a@b", "http://host?a@b", "http://host#a@b", "mailto:bob@host", "http:/bob@host",
        "bob@host",
        "", ":", "://", "http:", "http://", "/path@x", "http:\\\\bob@host",
    ])
    func anythingElseStaysAsItIs(text: String) {
        let parts = split(text)
        #expect(parts.url == text)
        #expect(parts.userInfo == nil)
    }

    private func split(_ text: String) -> (url: String, userInfo: String?) {
        let parts = Array(text.utf8).withUnsafeBytes { URLText.split(Secret(copying: $0)) }
        return (parts.url, parts.userInfo?.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
    }
}
