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
        ("", "This is not the URL of a proxy"), ("proxy.example:3128", "This is not the URL of a proxy"),
        ("ftp://proxy.example:3128", "This is not the URL of a proxy"),
        ("socks4://proxy.example:1080", "This is not the URL of a proxy"),
        ("socks://proxy.example:1080", "This is not the URL of a proxy"),
        ("https://proxy.example", "This URL names no port."), ("socks5h://proxy.example", "This URL names no port."),
        ("http://proxy.example", "This URL names no port."),
        ("http://", "This URL names no host."), ("http://:3128", "This URL names no host."),
        ("http://proxy.example:0", "The port has to be"), ("http://proxy.example:", "The port has to be"),
        ("http://h:1?q", "After the host and the port"),
        ("http://h:1#f", "After the host and the port"), ("http://::1:80", "An IPv6 address stands in brackets"),
        ("http://*.example:80", "This URL names no host."),
    ])
    func refusesAnythingElse(url: String, reason: String) throws {
        let text = try #require(problem(url))
        #expect(text.hasPrefix(reason) && text.hasSuffix("for example \"http://proxy.example.com:3128\"."))
    }

    @Test(arguments: [
        "http://alice:secret@proxy.example:3128", "http://secret@proxy.example:3128", "alice:secret@proxy.example",
        "http://alice:se/secret@proxy.example:3128", "http://@proxy.example:3128",
        "https://alice:secret@proxy.example:443", "socks5h://alice:secret@proxy.example:1080",
    ])
    func saysThatAPasswordDoesNotBelongThere(url: String) throws {
        let text = try #require(problem(url))
        #expect(text.contains("a password does not belong in this file") && !text.contains("secret"))
    }

    /// In the wrong place a password looks like a port or a host; without quotation marks the file is no TOML.
    @Test(arguments: [
        "'http://alice:secret'", "'http://secret word:80'", "'secret://h:80'", "http://alice:secret@h:80", "secret",
        "\"http://alice:secret@h:80", "['secret']", "'http://alice:secret/'",
    ])
    func neverRepeatsTheURL(value: String) throws {
        let problem = try #require(problems("[proxy]\nurl = \(value)\n").first)
        #expect(problem.line == 2 && !problem.description.contains("secret"))
    }
}
