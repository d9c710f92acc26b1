import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The rules for proxies and for fronts of sites.
@Suite struct FrontAccessTests {
    private let token = secret("s3cret:with:colons")

    private func proxy(token: Secret? = nil, hosts: [String] = ["h", "[::1]", "127.0.0.1"]) throws -> FrontAccess {
        FrontAccess(
            .proxy(token: token), allowedHosts: try hosts.map { try HostPattern($0) })
    }

    private var site: FrontAccess { FrontAccess(.site(names: ["127.0.0.1:3901", "Localhost:3901"])) }

    private func basic(_ text: String) -> String { "Basic " + Array(text.utf8).withUnsafeBytes { Base64.encode($0) } }

    private func status(_ verdict: FrontAccess.Verdict) -> Int? {
        if case .refused(let refusal) = verdict { refusal.status } else { nil }
    }

    private func siteGet(
        _ fields: String..., method: String = "GET", host: String = "127.0.0.1:3901"
    ) throws -> FrontRequest {
        try frontRequest("\(method) /x HTTP/1.1\r\nHost: \(host)\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n")
    }

    @Test(arguments: ["GET /x", "POST /", "OPTIONS *"])
    func aProxyRefusesOtherTargetsWithoutABody(line: String) throws {
        let request = try frontRequest("\(line) HTTP/1.1\r\nHost: h\r\n\r\n")
        guard case .refused(let refusal) = try proxy().verdict(request, isDescendant: true) else {
            Issue.record("\(line) is allowed")
            return
        }
        #expect(refusal.status == 400)
        #expect(refusal.bytes().text.hasSuffix("Content-Length: 0\r\nConnection: close\r\n\r\n"))
    }

    @Test func theTokenIsThePassword() throws {
        let access = try proxy(token: token, hosts: [])
        for user in ["", "front", "ü"] {
            let request = try frontRequest(proxyGet("Proxy-Authorization: \(basic("\(user):s3cret:with:colons"))"))
            #expect(access.verdict(request, isDescendant: false) == .allowed(usesCredentials: true))
        }
        let lowercased = basic("u:s3cret:with:colons").replacing("Basic", with: "bASIC")
        #expect(
            access.verdict(try frontRequest(proxyGet("Proxy-Authorization: \(lowercased)")), isDescendant: false)
                == .allowed(usesCredentials: true))
    }

    @Test(arguments: [
        nil, "u:S3cret:with:colons", "u:s3cret:with:colons2", "u:s3cret:with:colon", "s3cret:with:colons", "u:", "u",
        "",
    ])
    func aWrongTokenIsAnsweredWith407(text: String?) throws {
        let access = try proxy(token: token)
        let request = try frontRequest(text.map { proxyGet("Proxy-Authorization: \(basic($0))") } ?? proxyGet())
        #expect(access.verdict(request, isDescendant: false) == .refused(.token))
        #expect(access.verdict(request, isDescendant: true) == .allowed(usesCredentials: true))
    }

    @Test(arguments: ["Bearer s3cret:with:colons", "Basic", "Basic ===", "Basic s3cret:with:colons", "Basi dTpw"])
    func aMalformedTokenIsWrong(field: String) throws {
        let request = try frontRequest(proxyGet("Proxy-Authorization: \(field)"))
        #expect(try proxy(token: token).verdict(request, isDescendant: false) == .refused(.token))
    }

    @Test func anEmptyTokenIsNeverValid() throws {
        let request = try frontRequest(proxyGet("Proxy-Authorization: \(basic("u:"))"))
        #expect(try proxy(token: secret("")).verdict(request, isDescendant: false) == .refused(.token))
    }

    @Test func withoutATokenHostsAreListed() throws {
        let access = try proxy(hosts: ["*.example"])
        let urls = [("http://a.example/", true), ("http://example/", false), ("http://a.example.org/", false)]
        for (url, isAllowed) in urls {
            let verdict = access.verdict(try frontRequest(proxyGet(url: url)), isDescendant: false)
            #expect((status(verdict) == nil) == isAllowed, "\(url)")
        }
        let other = try frontRequest(proxyGet(url: "http://other/"))
        #expect(access.verdict(other, isDescendant: true) == .allowed(usesCredentials: true))
        let tunnel = try frontRequest("CONNECT other:443 HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(status(access.verdict(tunnel, isDescendant: false)) == 403)
    }

    @Test(arguments: [(443, true), (80, true), (22, true), (8443, true), (25, false), (8080, false), (3128, false)])
    func tunnelsLeadToListedPorts(port: Int, isAllowed: Bool) throws {
        let request = try frontRequest("CONNECT h:\(port) HTTP/1.1\r\nHost: h\r\n\r\n")
        #expect(try status(proxy().verdict(request, isDescendant: true)) == (isAllowed ? nil : 403))
    }

    @Test func noTunnelLeadsToPort25() throws {
        var access = try proxy()
        access.tunnelPorts = [25, 8080]
        for (port, expected) in [(25, 403), (8080, nil), (443, 403)] {
            let request = try frontRequest("CONNECT h:\(port) HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(status(access.verdict(request, isDescendant: true)) == expected, "\(port)")
        }
    }

    @Test(arguments: [
        ("", true), ("Sec-Fetch-Site: none", true), ("Sec-Fetch-Site: same-origin", true), ("Origin: http://h", true),
        ("Sec-Fetch-Site: cross-site", false), ("Sec-Fetch-Site: same-site", false), ("Sec-Fetch-Site: ", false),
        ("Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site", false), ("Origin: http://h:81", false),
        ("Origin: https://h", false), ("Origin: null", false), ("Origin: http://h.evil", false),
        ("Sec-Fetch-Site: none\r\nOrigin: http://evil", false), ("Origin: http://h\r\nOrigin: http://evil", false),
        ("Origin: http://h/x", false),
    ])
    func aPageOfAnotherSiteUsesNoStoredCredential(fields: String, usesCredentials: Bool) throws {
        let request = try frontRequest(fields.isEmpty ? proxyGet() : proxyGet(fields))
        #expect(try proxy().verdict(request, isDescendant: false) == .allowed(usesCredentials: usesCredentials))
    }

    @Test(arguments: [
        ("127.0.0.1:3901", true), ("localhost:3901", true), ("LOCALHOST:3901", true), ("127.0.0.1", false),
        ("127.0.0.1:3902", false), ("localhost.evil:3901", false), ("evil:3901", false), ("localhost:39010", false),
        ("127.0.0.1.evil:3901", false), ("", false),
    ])
    func aSiteHasExactNames(host: String, isAllowed: Bool) throws {
        for method in ["GET", "OPTIONS", "POST"] {
            let verdict = site.verdict(try siteGet(method: method, host: host), isDescendant: true)
            #expect(verdict == (isAllowed ? .allowed(usesCredentials: true) : .refused(.wrongName)))
        }
        let upgrade = try siteGet("Connection: Upgrade", "Upgrade: websocket", host: host)
        #expect((site.verdict(upgrade, isDescendant: true) == .refused(.wrongName)) == !isAllowed)
    }

    @Test func aSiteNeedsHost() throws {
        let request = try frontRequest("GET / HTTP/1.0\r\n\r\n")
        #expect(site.verdict(request, isDescendant: true) == .refused(.wrongName))
    }

    @Test(
        "The requests that Chromium sends for pages of other sites are refused",
        arguments: [
            "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site",
            "Origin: http://evil\r\nSec-Fetch-Site: cross-site", "Origin: http://localhost:3901", "Origin: null",
            "Connection: Upgrade\r\nUpgrade: websocket\r\nOrigin: http://evil\r\nSec-Fetch-Site: none",
            "Origin: https://127.0.0.1:3901", "Origin: http://127.0.0.1",
        ], ["GET", "POST", "OPTIONS"])
    func aSiteRefusesPagesOfOtherSites(fields: String, method: String) throws {
        let verdict = site.verdict(try siteGet(fields, method: method), isDescendant: true)
        #expect(verdict == .refused(.foreignPage))
    }

    @Test(arguments: ["Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: none", "Origin: http://127.0.0.1:3901"])
    func aSiteAdmitsItsOwnPages(field: String) throws {
        #expect(site.verdict(try siteGet(field), isDescendant: false) == .allowed(usesCredentials: true))
    }

    @Test(arguments: [
        "GET http://127.0.0.1/", "GET http://127.0.0.1:3902/", "GET http://evil:3901/",
        "GET http://localhost.evil:3901/",
        "GET http://evil/http://127.0.0.1:3901/", "CONNECT 127.0.0.1:3901",
    ])
    func aSiteIsNoProxy(line: String) throws {
        let request = try frontRequest("\(line) HTTP/1.1\r\nHost: 127.0.0.1:3901\r\n\r\n")
        #expect(site.verdict(request, isDescendant: true) == .refused(.notForSite))
    }

    @Test(
        arguments: ["http://127.0.0.1:3901/x", "HTTP://LOCALHOST:3901?x", "http://127.0.0.1:3901"],
        ["127.0.0.1:3901", "evil"])
    func aSiteMayBeNamedByAURL(url: String, host: String) throws {
        func verdict(_ fields: String) throws -> FrontAccess.Verdict {
            let request = try frontRequest("GET \(url) HTTP/1.1\r\nHost: \(host)\r\n\(fields)\r\n")
            return site.verdict(request, isDescendant: false)
        }
        #expect(try verdict("") == .allowed(usesCredentials: true))
        #expect(try verdict("Origin: http://evil\r\n") == .refused(.foreignPage))
        #expect(try verdict("Origin: http://\(host)\r\n") == .refused(.foreignPage) || !host.hasPrefix("evil"))
        #expect(try verdict("Sec-Fetch-Site: cross-site\r\n") == .refused(.foreignPage))
    }
}
