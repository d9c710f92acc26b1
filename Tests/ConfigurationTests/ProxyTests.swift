import Configuration
import Testing

@Suite struct ProxyTests {
    private func problem(_ url: String) -> String? { problems("[proxy]\nurl = '\(url)'").first?.text }

    @Test(arguments: [
        ("http://proxy.example.com:3128", "http://proxy.example.com:3128"),
        ("HTTP://Proxy.Example.com.:3128", "http://proxy.example.com:3128"), ("http://[::1]:1", "http://[::1]:1"),
        ("http://192.0.2.1:65535", "http://192.0.2.1:65535"), ("https://p.example:443", "https://p.example:443"),
        ("HTTPS://P.example:8443", "https://p.example:8443"), ("socks5h://[::1]:1080", "socks5h://[::1]:1080"),
        ("socks5://p.example:1080", "socks5h://p.example:1080"), ("SOCKS5H://p:1", "socks5h://p:1"),
        ("http://p:1/", "http://p:1"), ("http://p:1/a/b?c#d", "http://p:1"),
    ])
    func takesHostAndPort(url: String, canonical: String) {
        #expect(settings("proxy.url = '\(url)'")?.proxyURL == canonical)
    }

    @Test(arguments: [
        ("", "not a proxy URL"), ("proxy.example:3128", "not a proxy URL"),
        ("ftp://proxy.example:3128", "not a proxy URL"),
        ("socks4://proxy.example:1080", "not a proxy URL"),
        ("socks://proxy.example:1080", "not a proxy URL"),
        ("https://proxy.example", "this URL has no port"), ("socks5h://proxy.example", "this URL has no port"),
        ("http://proxy.example", "this URL has no port"),
        ("http://", "this URL has no valid host"), ("http://:3128", "this URL has no valid host"),
        ("http://proxy.example:0", "invalid port"), ("http://proxy.example:", "invalid port"),
        ("http://h:1?q", "remove the query or the fragment"),
        ("http://h:1#f", "remove the query or the fragment"), ("http://::1:80", "put an IPv6 address into brackets"),
        ("http://*.example:80", "this URL has no valid host"),
    ])
    func refusesAnythingElse(url: String, reason: String) throws {
        let text = try #require(problem(url))
        #expect(text.hasPrefix(reason) && text.hasSuffix("for example \"http://proxy.example.com:3128\""))
    }

    @Test(arguments: [
        "http://alice:secret@proxy.example:3128", "http://secret@proxy.example:3128", "alice:secret@proxy.example",
        "http://alice:se/secret@proxy.example:3128", "http://@proxy.example:3128",
        "https://alice:secret@proxy.example:443", "socks5h://alice:secret@proxy.example:1080",
    ])
    func saysThatAPasswordDoesNotBelongThere(url: String) throws {
        let text = try #require(problem(url))
        #expect(text.contains("which do not belong in this file") && !text.contains("secret"))
    }

    /// A misplaced password looks like a port or a host; without quotation marks the file is invalid TOML.
    @Test(arguments: [
        "'http://alice:secret'", "'http://secret word:80'", "'secret://h:80'", "http://alice:secret@h:80", "secret",
        "\"http://alice:secret@h:80", "['secret']", "'http://alice:secret/'",
    ])
    func neverRepeatsTheURL(value: String) throws {
        let problem = try #require(problems("[proxy]\nurl = \(value)\n").first)
        #expect(problem.line == 2 && !problem.description.contains("secret"))
    }
}
