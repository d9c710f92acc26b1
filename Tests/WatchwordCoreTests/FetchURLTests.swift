import Testing
import WatchwordProtocol

@testable import WatchwordCore

@Suite struct FetchURLTests {
    @Test(
        "Rule L5: a URL has one canonical text",
        arguments: [
            ("http://example.com", "http://example.com/"),
            ("HTTP://Example.COM:80/a", "http://example.com/a"),
            ("https://example.com:443", "https://example.com/"),
            ("https://example.com:8443/?q", "https://example.com:8443/?q"),
            ("http://h?x=1#frag", "http://h/?x=1"),
            ("http://h/a/./b/../c", "http://h/a/c"),
            ("http://h/a/%2E%2e/b", "http://h/b"),
            ("http://h/..", "http://h/"),
            ("http://h/a b\"<>", "http://h/a%20b%22%3C%3E"),
            ("http://h/grüße", "http://h/gr%C3%BC%C3%9Fe"),
            ("http://[::1]:8080/x", "http://[::1]:8080/x"),
            ("http://[2001:DB8::192.0.2.1]/", "http://[2001:db8::192.0.2.1]/"),
            ("http://127.0.0.1:1/", "http://127.0.0.1:1/"),
            ("http://h:/x", "http://h/x"),
        ])
    func hasOneCanonicalForm(text: String, canonical: String) throws {
        #expect(try FetchURL(text).text == canonical)
    }

    @Test(
        "Rule L5: a URL that could be read in two ways is refused",
        arguments: [
            "", "example.com", "ftp://h/", "file:///etc/passwd", "http:h/", "http://", "http:///x", "http://a@b/",
            "http://h:0/", "http://h:65536/", "http://h:1x/", "http://h:-1/", "http://exa mple/", "http://exämple/",
            "http://h\\@evil/", "http://h/a\\b", "http://h/a\nb", "http://h/\u{0}", "http://127.1/",
            "http://0x7f.0.0.1/",
            "http://2130706433/", "http://127.0.0.01/", "http://256.0.0.1/", "http://[::1/", "http://[::1]x/",
            "http://[zz]/", "http://a..b/", "http://%68/", "http://[1:2:3]/", "http://[1::2::3]/",
            "http://[::1%25eth0]/",
            "http://[::1%eth0]/", "http://[1.2.3.4]/", "http://[::12345]/", "http://[]/", "http://[:]/",
        ])
    func refusesAmbiguousURLs(text: String) {
        #expect { try FetchURL(text) } throws: { ($0 as? FetchFailure)?.kind == .badURL }
    }

    /// The examples of RFC 3986 section 5.4, for a base with a path and a query.
    @Test(arguments: [
        ("g", "/b/c/g"), ("./g", "/b/c/g"), ("g/", "/b/c/g/"), ("/g", "/g"), ("?y", "/b/c/d;p?y"), ("g?y", "/b/c/g?y"),
        ("#s", "/b/c/d;p?q"), ("g#s", "/b/c/g"), ("g?y#s", "/b/c/g?y"), (";x", "/b/c/;x"), ("g;x", "/b/c/g;x"),
        ("", "/b/c/d;p?q"), (".", "/b/c/"), ("./", "/b/c/"), ("..", "/b/"), ("../", "/b/"), ("../g", "/b/g"),
        ("../..", "/"), ("../../", "/"), ("../../g", "/g"), ("../../../g", "/g"), ("/./g", "/g"), ("/../g", "/g"),
        ("g.", "/b/c/g."), (".g", "/b/c/.g"), ("g..", "/b/c/g.."), ("./../g", "/b/g"), ("./g/.", "/b/c/g/"),
        ("g/./h", "/b/c/g/h"), ("g/../h", "/b/c/h"), ("g;x=1/../y", "/b/c/y"), ("g?y/../x", "/b/c/g?y/../x"),
    ])
    func resolvesReferences(reference: String, target: String) throws {
        let base = try FetchURL("http://a/b/c/d;p?q")
        #expect(try base.resolving(reference).requestTarget == target)
    }

    @Test func resolvesReferencesWithAHost() throws {
        let base = try FetchURL("https://a/b")
        #expect(try base.resolving("//g/x").text == "https://g/x")
        // Bytes that are not UTF-8 are those of the server.
        #expect(try base.resolving(received(latin1: "/\u{E9}?\u{FC}#\u{FC}")).requestTarget == "/%E9?%FC")
        #expect(try base.resolving(received(latin1: "/\u{C3}\u{A9}\u{E9}")).requestTarget == "/%C3%A9%E9")
        #expect(try base.resolving("/\u{E9}").requestTarget == "/%C3%A9")
        #expect(try base.resolving("http://g").text == "http://g/")
        #expect { try base.resolving("mailto:bob@g") } throws: { ($0 as? FetchFailure)?.kind == .badRedirect }
        #expect { try base.resolving("http://bob:pw@g/") } throws: { ($0 as? FetchFailure)?.kind == .badRedirect }
    }

    @Test("Rule 19: origins are equal when scheme, host and port are") func comparesOriginsByAllThreeParts() throws {
        let origin = try FetchURL("https://h/").origin
        #expect(try FetchURL("https://H:443/x").origin == origin)
        for other in ["http://h/", "https://h:444/", "https://h.x/"] { #expect(try FetchURL(other).origin != origin) }
    }

    @Test(arguments: [
        ("http://h/a/../b", "/a/../b", "/b"), ("http://h/a/%2e%2e/b?x=|", "/a/%2e%2e/b?x=|", "/b"),
        ("http://H:80/|{}^\"<>`", "/|{}^\"<>`", "/%7C%7B%7D%5E%22%3C%3E%60"), ("http://h", "/", "/"),
        ("http://h?a", "/?a", "/"),
        ("http://h//x", "//x", "//x"), ("http://h/\u{e9}", "/\u{e9}", "/%C3%A9"),
    ])
    func theTargetOfAProgramIsSentAsItIs(text: String, target: String, path: String) throws {
        let url = try FetchURL(text, keepsTarget: true)
        #expect(url.requestTarget == target && url.path.string == path)
        #expect(url.absoluteTarget == "http://h" + target)
        #expect(try FetchURL(text).text == url.text, "decisions and messages use the canonical form")
        #expect(throws: FetchFailure.self) { try FetchURL("http://h/a\\b", keepsTarget: true) }
    }
}

extension FetchURLTests {
    @Test(arguments: [
        ("/other/../a/x", true), ("/a/./x?q", true), ("/a/%2e%2E/x", true), ("/a/..", true), ("/a/../b;|/%2e", true),
        ("/a/x?../..", false), ("/..%2Fx", false), ("/a/|", false), ("/a/..b", false), ("/", false), ("", false),
    ])
    func aTargetWithDotSegmentsIsAmbiguous(target: String, isAmbiguous: Bool) throws {
        let url = try FetchURL("http://h" + target, keepsTarget: true)
        #expect(url.isAmbiguous == isAmbiguous)
        let sent = target.split(separator: "?").first.map(String.init) ?? "/"
        #expect(url.loginPath.string == (isAmbiguous ? sent : url.path.string))
        #expect(try !FetchURL("http://h" + target).isAmbiguous, "dot segments are resolved")
    }
}

@Suite struct UserInfoTests {
    private func userInfo(_ text: String) throws -> UserInfo { try UserInfo(secret(text)) }

    @Test func splitsAtTheFirstColonAndDecodes() throws {
        let full = try userInfo("b%40b:p:w%3a")
        #expect(full.user == "b@b")
        #expect(full.password == secret("p:w:"))
        #expect(try userInfo("bob").password == nil)
        #expect(try userInfo("bob:").password == secret(""))
    }

    @Test(arguments: ["b%4", "b%zz", "b%0d%0a", "b\\c", "a@b", "bob:p%00"])
    func refusesInvalidEncoding(text: String) {
        #expect { try userInfo(text) } throws: { ($0 as? FetchFailure)?.kind == .badURL }
    }
}

func secret(_ text: String) -> Secret { Array(text.utf8).withUnsafeBytes { Secret(copying: $0) } }

extension Secret {
    /// For assertions only.
    var revealed: String { withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
}
