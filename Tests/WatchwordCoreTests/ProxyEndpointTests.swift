import Testing
import WatchwordProtocol

@testable import WatchwordCore

@Suite struct ProxyEndpointTests {
    @Test(arguments: [
        "", "http://", "http://h:x", "ftp://h:1", "http://h:0", "http://u@h:1", "h:1", "http://h:1?a", "http://h:1#a",
    ])
    func invalidProxyURLsAreRefused(url: String) {
        #expect(throws: FetchFailure.self) { try ProxyEndpoint(url) }
    }

    @Test(arguments: [
        ("http://P.example:3128", ProxyType.http, "p.example", 3128), ("https://[::1]:8/", .https, "[::1]", 8),
        ("socks5://h:1", .socks, "h", 1), ("socks5h://h:80", .socks, "h", 80), ("http://h", .http, "h", 1080),
        ("https://h", .https, "h", 443), ("http://h:1/", .http, "h", 1), ("http://h:1/a/b?c#d", .http, "h", 1),
        ("https://h/a:1", .https, "h", 443), ("http://h:1/a@b", .http, "h", 1),
    ])
    func anAddressIsReadInItsParts(url: String, type: ProxyType, host: ExactText, port: Int) throws {
        #expect(try ProxyEndpoint(url) == ProxyEndpoint(type: type, host: host, port: port))
    }
}
