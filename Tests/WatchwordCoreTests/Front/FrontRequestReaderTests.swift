import Glibc
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// RFC 9112 sections 2 to 7 and 9. Every request is also read in pieces.
@Suite struct FrontRequestReaderTests {
    private let url: FetchURL

    init() throws { url = try FetchURL("http://h/x?y") }

    @Test func anAbsoluteURLIsTheTargetOfAProxyRequest() throws {
        let request = try frontRequest("GET HTTP://H:80/a/../x?y HTTP/1.1\r\nHost: other:8\r\nAccept: \t*/* \r\n\r\n")
        #expect(request.target == .absolute(try FetchURL("http://h/a/../x?y", keepsTarget: true)))
        #expect(request.method == "GET" && request.minorVersion == 1 && request.keepsAlive && request.body == .none)
        #expect(request.headers == [HeaderField("Host", "other:8"), HeaderField("Accept", "*/*")])
        #expect(request.host == "other:8")
    }

    @Test(arguments: ["http://[::1]:81/", "http://[2001:db8::1]/"])
    func anAddressCanBeTheTarget(text: String) throws {
        #expect(try frontRequest(proxyGet(url: text)).target == .absolute(FetchURL(text)))
    }

    @Test func aTargetInOriginFormIsAPath() throws {
        #expect(try frontRequest("GET /a/../b?c=@d HTTP/1.1\r\nHost: h\r\n\r\n").target == .origin("/a/../b?c=@d"))
        #expect(try frontRequest("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n").target == .origin("*"))
    }

    @Test(
        "CONNECT has the authority form, in HTTP/1.0 as well",
        arguments: [("h:443", "h", 443), ("H.example:80", "h.example", 80), ("[::1]:22", "[::1]", 22)], [0, 1])
    func connectHasTheAuthorityForm(target: (text: String, host: String, port: Int), version: Int) throws {
        let request = try frontRequest("CONNECT \(target.text) HTTP/1.\(version)\r\nHost: h\r\n\r\n")
        #expect(request.target == .authority(host: ExactText(target.host), port: target.port))
        #expect(request.isConnect && request.minorVersion == version)
    }

    @Test func bytesAfterConnectBelongToTheTunnel() {
        var reader = FrontRequestReader()
        let text = "CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\n\r\n"
        Array(text.utf8).withUnsafeBytes { reader.append($0) }
        var items = [reader.next(), reader.next()]
        [UInt8]([1, 2]).withUnsafeBytes { reader.append($0) }
        items.append(reader.next())
        #expect(items.map { $0 == nil } == [false, true, true])
        let rests = [reader.takeRest(), reader.takeRest()]
        #expect(rests.map(\.text) == ["GET / HTTP/1.1\r\n\r\n\u{1}\u{2}", ""])
    }

    @Test func pipelinedRequestsAreReadInOrder() throws {
        let items = frontItems(
            "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc\r\n"
                + "POST /2 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
                + "2\r\nde\r\nA \t; x=\"y\"\r\n0123456789\r\n0\r\nX-Sum: 1\r\nHost: evil\r\nAuthorization: x\r\n\r\n"
                + "GET /3 HTTP/1.0\r\n\r\n")
        let heads = items.compactMap { if case .head(let request) = $0 { request } else { nil } }
        #expect(heads.map(\.target) == [.origin("/1"), .origin("/2"), .origin("/3")])
        #expect(heads.map(\.body) == [.sized(3), .chunked, .none])
        #expect(
            items.filter { if case .head = $0 { false } else { true } } == [
                .body(Array("abc".utf8)), .end(trailers: []), .body(Array("de0123456789".utf8)),
                .end(trailers: [HeaderField("X-Sum", "1")]), .end(trailers: []),
            ])
    }

    @Test func aBodyIsReturnedInParts() {
        var reader = FrontRequestReader(FrontLimits(partBytes: 4))
        let text = "PUT /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabcdefGET"
        Array(text.utf8).withUnsafeBytes { reader.append($0) }
        var items: [FrontItem] = []
        while let item = reader.next() { items.append(item) }
        #expect(items.dropFirst() == [.body(Array("abcd".utf8)), .body(Array("ef".utf8)), .end(trailers: [])])
        let rest = reader.bufferedBytes
        #expect(rest == 3)
    }

    @Test func aCredentialIsASecret() throws {
        let request = try frontRequest(
            proxyGet("authorization:  Bearer abc ", "Proxy-Authorization: Basic eDp5", "Cookie: a=b"))
        #expect(request.authorization == secret("Bearer abc"))
        #expect(request.proxyAuthorization == secret("Basic eDp5"))
        #expect(request.headers == [HeaderField("Host", "h"), HeaderField("Cookie", "a=b")])
        #expect(!"\(request)".contains("abc") && !"\(request)".contains("eDp5"))
    }

    @Test(arguments: [
        (1, "", true), (1, "Connection: Close\r\n", false), (1, "Connection: x, close\r\n", false), (0, "", false),
        (0, "Connection: Keep-Alive\r\n", true), (0, "Connection: keep-alive\r\nConnection: close\r\n", false),
    ])
    func connectionDeterminesReuse(version: Int, field: String, expected: Bool) throws {
        func keepsAlive(_ target: String) throws -> Bool {
            try frontRequest("GET \(target) HTTP/1.\(version)\r\nHost: h\r\n\(field)\r\n").keepsAlive
        }
        #expect(try keepsAlive("/") == expected)
        #expect(try keepsAlive("http://h/") == (expected && version == 1), "a proxy closes the connections of HTTP/1.0")
    }

    @Test(arguments: [
        ("OPTIONS http://h", "*", "http://h"), ("OPTIONS http://h:81", "*", "http://h:81"),
        ("OPTIONS http://h/", "/", "http://h/"), ("OPTIONS http://h?x", "/?x", "http://h/?x"),
        ("GET http://h", "/", "http://h/"), ("options http://h", "/", "http://h/"),
    ])
    func optionsWithoutAPathAreForTheServer(line: String, target: String, upstream: String) throws {
        guard case .absolute(let url) = try frontRequest("\(line) HTTP/1.1\r\nHost: h\r\n\r\n").target else {
            Issue.record("no URL")
            return
        }
        #expect(url.requestTarget == target && url.absoluteTarget == upstream && url.path == "/")
    }

    @Test func expectIsReadInHTTP11() throws {
        let fields = "Host: h\r\nExpect: 100-Continue\r\nContent-Length: 1\r\n\r\n"
        #expect(try frontRequest("PUT / HTTP/1.1\r\n\(fields)").expectsContinue)
        #expect(try !frontRequest("PUT / HTTP/1.0\r\n\(fields)").expectsContinue)
        #expect(frontRefusal(proxyGet("Expect: x"))?.status == 417)
    }

    @Test func anUpgradeNeedsConnection() throws {
        #expect(try frontRequest(proxyGet("Connection: upgrade", "Upgrade: websocket")).upgrade == "websocket")
        #expect(try frontRequest(proxyGet("Upgrade: websocket")).upgrade == nil)
        #expect(
            try frontRequest(proxyGet("Connection: upgrade", "Upgrade: websocket", "Content-Length: 1")).upgrade == nil)
        for other in ["h2c", "HTTP/2.0", "TLS/1.0, HTTP/1.1", "IRC/6.9", "x-websocket"] {
            #expect(try frontRequest(proxyGet("Connection: upgrade", "Upgrade: \(other)")).upgrade == nil)
        }
        #expect(try frontRequest(proxyGet("Connection: upgrade", "Upgrade: h2c, WebSocket")).upgrade == "WebSocket")
        #expect(
            try frontRequest("GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n").upgrade == nil)
    }

    @Test("Rule X2: the bytes of a value are kept, in UTF-8 or not")
    func theBytesOfAValueAreKept() throws {
        let head = Array("GET / HTTP/1.1\r\nHost: h\r\nX: ".utf8)
        let utf8 = frontItems(bytes: head + [0xC3, 0xA4, 13, 10, 13, 10])
        let latin1 = frontItems(bytes: head + [0xE4, 13, 10, 13, 10])
        for (items, bytes) in [(utf8, [0xC3, 0xA4]), (latin1, [0xE4])] as [([FrontItem], [UInt8])] {
            guard case .head(let request)? = items.first else { return #expect(Bool(false), "no head") }
            #expect(request.headers.last?.value.headerBytes == bytes)
            #expect(request.headers.last?.value.readable == "ä")
        }
    }

    @Test(arguments: [("1.1", 1), ("1.2", 1), ("1.9", 1), ("1.0", 0)])
    func aLaterVersionIsReadLikeHTTP11(version: String, minor: Int) throws {
        let request = try frontRequest("GET / HTTP/\(version)\r\nHost: h\r\n\r\n")
        #expect(request.minorVersion == minor && request.keepsAlive == (minor == 1))
    }

    @Test func emptyLinesBeforeARequestAreSkipped() throws {
        #expect(try frontRequest("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n").target == .origin("/"))
        let limits = FrontLimits(emptyLines: 2)
        #expect(frontItems("\r\n\r\nGET / HTTP/1.0\r\n\r\n", limits).count == 2)
        #expect(frontRefusal("\r\n\r\n\r\nGET / HTTP/1.0\r\n\r\n", limits) == .emptyLines)
    }

    @Test func nothingFollowsARefusal() {
        let items = frontItems("GET /\r\nGET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n")
        #expect(items == [.refused(.requestLine)])
    }

    @Test func anIncompleteRequestHasNoItem() {
        #expect(frontItems("GET / HTTP/1.1\r\nHost: h\r\n").isEmpty)
    }

    @Test func timeIsLinearInTheInput() {
        let count = 200_000
        let requests = Array(String(repeating: "GET / HTTP/1.0\r\n\r\n", count: count / 20).utf8)
        let chunks = Array(
            ("PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                + String(repeating: "1\r\nx\r\n", count: count / 10) + "0\r\n\r\n").utf8)
        let time = processorSeconds {
            #expect(frontItems([requests]).count == count / 10)
            #expect(frontItems([chunks]).count == 3)
            #expect(frontItems(Array("GET /".utf8).map { [$0] } + Array(repeating: [0x61], count: 60_000)).isEmpty)
        }
        #expect(time < 20, "quadratic time would be minutes")
    }

    /// The processor time of this thread, which does not depend on other work on the machine.
    private func processorSeconds(_ work: () -> Void) -> Int {
        func now() -> Int {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return time.tv_sec
        }
        let start = now()
        work()
        return now() - start
    }
}
