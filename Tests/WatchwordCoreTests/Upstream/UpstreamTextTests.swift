import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The results of PAC files, and the settings of the desktop.
@Suite struct UpstreamTextTests {
    private func endpoint(_ type: ProxyType, _ host: ExactText, _ port: Int) -> Upstream {
        .proxy(ProxyEndpoint(type: type, host: host, port: port))
    }

    @Test func parsesTheResultOfAPACFile() throws {
        let expected: [(String, [Upstream])] = [
            ("DIRECT", [.direct]), ("proxy A:1", [endpoint(.http, "a", 1)]),
            (" PROXY a:1 ;DIRECT; ", [endpoint(.http, "a", 1), .direct]),
            (
                "HTTPS a:1; SOCKS5 b:2; SOCKS c:3; HTTP d:4",
                [endpoint(.https, "a", 1), endpoint(.socks, "b", 2), endpoint(.socks, "c", 3), endpoint(.http, "d", 4)]
            ),
            ("QUIC a:1; SOCKS4 a:1; PROXY b:2", [endpoint(.http, "b", 2)]),
            (
                "PROXY a; HTTPS b; SOCKS c; PROXY [2001:db8::1]",
                [
                    endpoint(.http, "a", 80), endpoint(.https, "b", 443), endpoint(.socks, "c", 1080),
                    endpoint(.http, "[2001:db8::1]", 80),
                ]
            ),
            ("PROXY [2001:db8::1]:8080", [endpoint(.http, "[2001:db8::1]", 8080)]),
            ("PROXY user:pw@a:1; PROXY a:1/x; DIRECT x; PROXY b:2", [endpoint(.http, "b", 2)]),
        ]
        for (text, upstreams) in expected { #expect(try PACScript.upstreams(text) == upstreams, "\(text)") }
        let many = try PACScript.upstreams(Array(repeating: "PROXY a:1", count: 100).joined(separator: ";"))
        #expect(many.count == 16)
    }

    /// As in browsers, the byte order mark decides, then UTF-8, then Latin-1.
    @Test func theEncodingOfAPACFileIsFound() throws {
        let text = "// é€\n"
        func read(_ bytes: [UInt8]) throws -> String { String(decoding: try PACScript(bytes).bytes, as: UTF8.self) }
        #expect(try read(Array(text.utf8)) == text)
        #expect(try read([0xEF, 0xBB, 0xBF] + Array(text.utf8)) == text)
        #expect(try read([0xFE, 0xFF] + text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }) == text)
        #expect(try read([0xFF, 0xFE] + text.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }) == text)
        #expect(try read([0x2F, 0x2F, 0xE9, 0xFF]) == "//éÿ")
        #expect(try read([]).isEmpty && read([0xFE, 0xFF, 0x41]).isEmpty)
    }

    @Test(arguments: [
        "", ";", "PROXY", "PROXY a:1 b:2", "NONE", "DIRECTLY", "PROXY a:99999", "PROXY a:", "DIRECT or so",
    ])
    func aResultWithoutASupportedProxyIsAFailure(text: String) {
        #expect(throws: UpstreamFailure.self) { try PACScript.upstreams(text) }
    }

    @Test func aLargeFileIsRefused() throws {
        #expect(try PACScript(Array(repeating: 0x20, count: PACScript.largestSize)).bytes.count == 1 << 20)
        #expect(throws: UpstreamFailure.self) {
            try PACScript(Array(repeating: 0x20, count: PACScript.largestSize + 1))
        }
    }

    // MARK: The desktop

    private func settings(_ mode: String, _ more: String...) throws -> DesktopProxy {
        let lines = [
            "org.gnome.system.proxy autoconfig-url 'http://wpad/p.pac'", "org.gnome.system.proxy mode '\(mode)'",
            "org.gnome.system.proxy ignore-hosts ['localhost', '127.0.0.0/8', '::1', '10.1.0.0/16', '*.in.test', "
                + "'2001:db8::/32']",
            "org.gnome.system.proxy use-same-proxy true", "org.gnome.system.proxy.http host 'a'",
            "org.gnome.system.proxy.http port 8080", "org.gnome.system.proxy.https host 'b'",
            "org.gnome.system.proxy.https port 8081",
        ]
        return try DesktopProxy(gsettings: (lines + more).joined(separator: "\n"))
    }

    private func upstreams(_ settings: DesktopProxy, _ url: String) throws -> [Upstream] {
        try settings.upstreams(for: FetchURL(url).origin)
    }

    @Test func readsManualSettings() throws {
        let manual = try settings("manual")
        #expect(manual.scriptURL == nil)
        #expect(try upstreams(manual, "http://h/") == [endpoint(.http, "a", 8080)])
        #expect(try upstreams(manual, "https://h/") == [endpoint(.http, "b", 8081)])
        let direct = [
            "http://localhost/", "http://127.1.2.3/", "http://[::1]/", "http://10.1.255.1/", "http://h.in.test/",
            "http://[2001:db8:1::1]/",
        ]
        for url in direct { #expect(try upstreams(manual, url) == [.direct], "\(url)") }
        for url in ["http://10.2.0.1/", "http://in.test/", "http://[2001:db9::1]/"] {
            #expect(try upstreams(manual, url) == [endpoint(.http, "a", 8080)], "\(url)")
        }
        let socks = try DesktopProxy(
            gsettings: "org.gnome.system.proxy mode 'manual'\norg.gnome.system.proxy.socks host 's'\n"
                + "org.gnome.system.proxy.socks port 1080\norg.gnome.system.proxy ignore-hosts @as []")
        #expect(try upstreams(socks, "https://h/") == [endpoint(.socks, "s", 1080)])
    }

    @Test func readsTheOtherModes() throws {
        #expect(try upstreams(settings("none"), "http://h/") == [.direct])
        #expect(try settings("auto").scriptURL == "http://wpad/p.pac")
        #expect(throws: UpstreamFailure.self) { try settings("other") }
        #expect(throws: UpstreamFailure.self) { try DesktopProxy(gsettings: "") }
    }

    @Test func manualSettingsWithoutAProxyAreNotDirect() throws {
        let empty = try DesktopProxy(
            gsettings: "org.gnome.system.proxy mode 'manual'\norg.gnome.system.proxy.http host ''\n"
                + "org.gnome.system.proxy.http port 8080\norg.gnome.system.proxy.https host 'b'\n"
                + "org.gnome.system.proxy.https port 0")
        for url in ["http://h/", "https://h/"] {
            #expect(throws: UpstreamFailure.self) { try upstreams(empty, url) }
        }
    }
}
