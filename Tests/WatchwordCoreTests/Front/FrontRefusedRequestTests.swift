import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Requests that a front refuses, because another server might read them differently (RFC 9112 sections 2.2, 3, 5 and 6).
@Suite struct FrontRefusedRequestTests {
    private func post(_ fields: String...) -> String {
        "POST /x HTTP/1.1\r\nHost: h\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
            + "3\r\nabc\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
    }

    private func refused(_ text: String, _ limits: FrontLimits = FrontLimits()) -> FrontRefusal? {
        let items = frontItems(text, limits)
        guard items.count == 1, case .refused(let refusal) = items[0] else { return nil }
        return refusal
    }

    @Test(arguments: [
        ["Content-Length: 3", "Transfer-Encoding: chunked"], ["Transfer-Encoding: chunked", "content-length: 3"],
        ["Content-Length: 0", "Transfer-Encoding: identity"],
    ])
    func twoFramings(fields: [String]) {
        #expect(refused(post(fields[0], fields[1])) == .bothLengths)
    }

    @Test(arguments: [
        "3\r\nContent-Length: 4", "3\r\nContent-Length: 3", "+3", "-3", "3, 3", "3,4", "0x3", "3 3", "", "٣",
    ])
    func aLengthIsOneDecimalNumber(length: String) {
        #expect(refused(post("Content-Length: \(length)")) == .length)
    }

    @Test(arguments: [
        "9007199254740993", "4611686018427387904", "18446744073709551619", "99999999999999999999999999",
        "000\(Limits.bodyBytes + 1)",
    ])
    func aBodyHasALimitedSize(length: String) throws {
        #expect(refused(post("Content-Length: \(length)")) == .bodySize)
        let text = "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\(Limits.bodyBytes)\r\n\r\n"
        #expect(try frontRequest(text).body == .sized(Limits.bodyBytes))
    }

    @Test(arguments: [
        "gzip", "gzip, chunked", "chunked, gzip", "xchunked", "chunked, chunked", "identity", "", "chunked;q=1",
        "\"chunked\"", "chunked,", "chunked\r\nTransfer-Encoding: chunked", "chunked\r\nTransfer-Encoding: gzip",
    ])
    func onlyChunkedIsSupported(coding: String) {
        #expect(refused(post("Transfer-Encoding: \(coding)")) == .coding)
    }

    @Test func codingsNeedHTTP11() {
        #expect(refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") == .codingOfOldVersion)
    }

    @Test(arguments: [
        ("G", "x\r\nabc\r\n"), ("", "\r\nabc\r\n"), ("-3", "\r\nabc\r\n"), ("0x3", "\r\nabc\r\n"),
        ("3 ", "\r\nabc\r\n"),
        (" 3", "\r\nabc\r\n"), ("3\t", "\r\nabc\r\n"), ("3 a;b", "\r\nabc\r\n"), (" ;a", "\r\nabc\r\n"),
        ("3 \u{0};", "\r\nabc\r\n"), ("3", "\r\nabcd\r\n"), ("3", "\r\nabc\n"), ("0000000000000003", "\r\nabc\r\n"),
        ("3\u{0}", "\r\nabc\r\n"),
    ])
    func aChunkIsWellFormed(size: String, rest: String) {
        let head = "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        #expect(frontItems("\(head)\(size)\(rest)0\r\n\r\n").last == .refused(.chunk))
    }

    @Test(arguments: ["fffffffffffffff", "20000000000001"])
    func aChunkHasALimitedSize(size: String) {
        let head = "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        #expect(frontItems("\(head)\(size)\r\nabc").last == .refused(.bodySize))
    }

    @Test func chunkExtensionsAreLimitedInTotal() {
        let head = "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        let limits = FrontLimits(chunkExtensionBytes: 8)
        #expect(frontItems(head + "1;ab\r\nx\r\n1;abcd\r\ny\r\n0\r\n\r\n", limits).last == .end(trailers: []))
        #expect(frontItems(head + "1;ab\r\nx\r\n1;abcde\r\ny\r\n0\r\n\r\n", limits).last == .refused(.chunkExtension))
        #expect(frontItems(head + "1;" + String(repeating: "a", count: 40), limits).last == .refused(.chunkExtension))
        #expect(frontItems(head + "1;a\rb\r\nx\r\n0\r\n\r\n").last == .refused(.chunkExtension))
        #expect(frontItems(head + "1\nx\r\n0\r\n\r\n").last == .refused(.lineFeed))
    }

    @Test(arguments: [
        (" folded: x", FrontRefusal.fold), ("\tfolded", .fold), ("X : y", .fieldName), ("X\t: y", .fieldName),
        (": y", .fieldName), ("no colon", .fieldName), ("X\u{0}: y", .fieldName), ("X(: y", .fieldName),
        ("Ä: y", .fieldName), ("X: a\u{0}b", .fieldValue), ("X: a\rb", .fieldValue), ("X: a\u{7F}", .fieldValue),
        ("X: \u{1B}[2J", .fieldValue), ("X: y\nZ: y", .lineFeed), ("X: y\n", .lineFeed),
        ("Authorization: a\rb", .fieldValue), ("Authorization : a", .fieldName),
    ])
    func aFieldIsOneLine(line: String, refusal: FrontRefusal) {
        #expect(refused(proxyGet("A: b", line)) == refusal)
    }

    @Test(arguments: ["Authorization", "Proxy-Authorization"])
    func aCredentialOccursOnce(name: String) {
        #expect(refused(proxyGet("\(name): a", "\(name.asciiLowercased): a")) == .twoCredentials)
    }

    @Test(arguments: [
        "Host: a\r\nHost: a", "Host: a\r\nhost: b", "", "Host: a b", "Host: u@h", "Host: a, b", "Host: /",
    ])
    func aRequestHasOneHost(hosts: String) {
        let fields = hosts.isEmpty ? "" : "\(hosts)\r\n"
        #expect(refused("GET http://h/ HTTP/1.1\r\n\(fields)\r\n") == .host)
    }

    @Test(arguments: [
        ("PRI * HTTP/2.0", 505), ("GET / HTTP/2", 505), ("GET / HTTP/1.x", 505), ("GET / HTTP/1.", 505),
        ("GET / HTTP/0.9", 505),
        ("GET / HTTP/1.10", 505), ("GET /", 400), ("GET / http/1.1", 400), ("GET  / HTTP/1.1", 400),
        ("GET / HTTP/1.1 ", 400), (" GET / HTTP/1.1", 400), ("GET\t/\tHTTP/1.1", 400), ("G(T / HTTP/1.1", 400),
        ("\u{16}\u{3}\u{1}", 400),
    ])
    func aRequestLineHasThreeWords(line: String, status: Int) {
        #expect(refused("\(line)\r\nHost: h\r\n\r\nSM\r\n\r\n")?.status == status)
    }

    @Test(arguments: [
        ("GET http://u:p@h/", FrontRefusal.userInformation), ("GET http://u@h/", .userInformation),
        ("GET http://u:p@h?x", .userInformation), ("CONNECT u:p@h:443", .userInformation),
        ("GET u:p@h", .userInformation), ("GET https://h/", .scheme), ("GET ftp://h/", .scheme), ("GET h:80", .target),
        ("GET *", .target), ("GET http:/h", .target), ("GET /a#b", .target), ("CONNECT h", .target),
        ("CONNECT h:", .target), ("CONNECT h:0", .target), ("CONNECT h:65536", .target), ("CONNECT :443", .target),
        ("CONNECT [::1]", .target), ("CONNECT ::1:443", .target), ("CONNECT /x", .target),
        ("CONNECT http://h/", .target), ("CONNECT h:443/", .target), ("CONNECT 127.1:443", .target),
    ])
    func aTargetHasOneOfFourForms(line: String, refusal: FrontRefusal) {
        #expect(refused("\(line) HTTP/1.1\r\nHost: h\r\n\r\n") == refusal)
    }

    @Test(arguments: ["http://", "http:///x", "http://h:x/", "http://a\\b/", "http://h/\\", "http://0x7f.1/"])
    func aURLIsWellFormed(url: String) {
        let refusal = refused(proxyGet(url: url))
        #expect(refusal?.status == 400 && refusal?.reason == "target")
    }

    @Test(arguments: ["GET http://h/", "GET /", "CONNECT "])
    func aTargetHasALimitedSize(line: String) throws {
        func items(_ bytes: Int) -> [FrontItem] {
            let target = String(repeating: "a", count: bytes - line.utf8.count + 4)
            return frontItems([Array("\(line)\(target) HTTP/1.1\r\nHost: h\r\n\r\n".utf8)])
        }
        #expect(items(Limits.urlBytes + 9) == [.refused(.targetSize)] && items(65 << 10) == [.refused(.targetSize)])
        #expect(line.hasPrefix("CONNECT") || items(Limits.urlBytes).count == 2)
    }

    @Test func aMethodHasALimitedSize() throws {
        #expect(refused("\(String(repeating: "A", count: 33)) / HTTP/1.1\r\nHost: h\r\n\r\n") == .method)
        #expect(
            try frontRequest("\(String(repeating: "A", count: 32)) / HTTP/1.1\r\nHost: h\r\n\r\n").target
                == .origin("/"))
    }

    @Test func connectHasNoBody() throws {
        #expect(refused("CONNECT h:443 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n") == .connectBody)
        #expect(refused("CONNECT h:443 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n") == .connectBody)
        #expect(try frontRequest("CONNECT h:443 HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n").body == .none)
    }

    @Test func aHeadHasALimitedSize() {
        let text = "GET / HTTP/1.0\r\nA: b\r\n\r\n"
        #expect(frontItems(text, FrontLimits(headBytes: 24)).count == 2)
        #expect(refused(text, FrontLimits(headBytes: 23)) == .headSize)
        #expect(refused(text, FrontLimits(headBytes: 17)) == .headSize)
        #expect(refused(text, FrontLimits(headBytes: 15)) == .targetSize)
        #expect(refused(String(repeating: "A", count: 40), FrontLimits(headBytes: 40)) == .method)
        #expect(frontItems(text, FrontLimits(fields: 1)).count == 2)
        #expect(refused(text, FrontLimits(fields: 0)) == .fieldCount)
    }

    @Test func trailersHaveALimitedSize() {
        let text = "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
        let long = text + "A: " + String(repeating: "b", count: 60) + "\r\n\r\n"
        #expect(frontItems(long, FrontLimits(headBytes: 64)).last == .refused(.headSize))
        #expect(frontItems(long, FrontLimits(headBytes: 80)).count == 2)
        #expect(frontItems(text + "A: b\r\nB: c\r\nC: d\r\n\r\n", FrontLimits(fields: 2)).last == .refused(.fieldCount))
        #expect(frontItems(text + "A: b\r\n c\r\n\r\n").last == .refused(.fold))
    }

    @Test func noPartOfACredentialIsInARefusal() {
        for text in ["GET http://user:hunter2@h/ HTTP/1.1\r\n\r\n", proxyGet("Authorization: Basic hunter2\u{1}")] {
            let refusal = refused(text)
            #expect(refusal != nil && refusal?.text.contains("hunter2") == false)
        }
    }
}
