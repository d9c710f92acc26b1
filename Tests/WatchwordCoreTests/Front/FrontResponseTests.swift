import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// RFC 9112 sections 6 and 7.
@Suite struct FrontResponseTests {
    private func request(_ method: String = "GET", minorVersion: Int = 1, keepsAlive: Bool = true) -> FrontRequest {
        FrontRequest(method: method, target: .origin("/"), minorVersion: minorVersion, keepsAlive: keepsAlive)
    }

    private func response(_ length: Int?, _ request: FrontRequest, status: Int = 200) -> FrontResponse {
        FrontResponse(status: status, headers: [HeaderField("A", "b")], length: length, to: request)
    }

    @Test func aKnownLengthIsSent() {
        let sized = response(3, request())
        #expect(sized.bytes.text == "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\n\r\n")
        #expect(sized.framing == .sized(3) && sized.keepsAlive)
        #expect(response(0, request()).framing == .none)
        #expect(response(0, request()).bytes.text.contains("Content-Length: 0\r\n"))
    }

    @Test func receivedBytesAreSent() {
        let fields = [HeaderField("ETag", received(latin1: "\"\u{E9}\"")), HeaderField("A", "é")]
        let response = FrontResponse(
            status: 200, reason: received(latin1: "d\u{E9}j\u{E0}"), headers: fields, length: 0, to: request())
        let head = "HTTP/1.1 200 d\u{E9}j\u{E0}\r\nETag: \"\u{E9}\"\r\nA: \u{C3}\u{A9}\r\nContent-Length: 0\r\n\r\n"
        #expect(response.bytes == head.unicodeScalars.map { UInt8($0.value) })
        let end = FrontResponse.lastChunk(trailers: [HeaderField("X-Sum", received(latin1: "\u{E9}"))])
        #expect(end == Array("0\r\nX-Sum: ".utf8) + [0xE9] + Array("\r\n\r\n".utf8))
    }

    @Test func anUnknownLengthIsChunkedOrEndsTheConnection() {
        let chunked = response(nil, request())
        #expect(chunked.bytes.text == "HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\n\r\n")
        #expect(chunked.framing == .chunked && chunked.keepsAlive)
        let old = response(nil, request(minorVersion: 0))
        #expect(old.bytes.text == "HTTP/1.1 200 OK\r\nA: b\r\nConnection: close\r\n\r\n")
        #expect(old.framing == .closeDelimited && !old.keepsAlive)
    }

    @Test(
        arguments: [("HEAD", 200), ("GET", 204), ("GET", 304), ("GET", 100), ("GET", 103), ("CONNECT", 200)], [nil, 5])
    func someResponsesHaveNoBody(kind: (method: String, status: Int), length: Int?) {
        let response = self.response(length, request(kind.method), status: kind.status)
        #expect(response.framing == .none)
        #expect(!response.bytes.text.contains("Transfer-Encoding"))
        let namesLength = length != nil && (kind.method == "HEAD" || kind.status == 304)
        #expect(response.bytes.text.contains("Content-Length") == namesLength)
    }

    @Test func theConnectionIsAnnounced() {
        #expect(response(1, request(keepsAlive: false)).bytes.text.contains("Connection: close\r\n"))
        #expect(response(1, request(minorVersion: 0)).bytes.text.contains("Connection: keep-alive\r\n"))
        let closed = FrontResponse(status: 200, headers: [], length: 1, to: request(), keepsAlive: false)
        #expect(!closed.keepsAlive && closed.bytes.text.contains("Connection: close\r\n"))
        var upgrade = request()
        upgrade.upgrade = "websocket"
        let switched = FrontResponse(status: 101, headers: [], length: nil, to: upgrade)
        #expect(
            switched.bytes.text
                == "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        #expect(switched.framing == .switched && !switched.keepsAlive)
        #expect(FrontResponse(status: 101, headers: [], length: nil, to: request()).framing == .none)
    }

    @Test func noValueBreaksALine() {
        let headers = [
            HeaderField("A", "b\r\nEvil: 1\u{0}"), HeaderField("B\r\nEvil", "x"), HeaderField("", "x"),
            HeaderField("Content-Length", "9"), HeaderField("Transfer-Encoding", "x"), HeaderField("Connection", "y"),
            HeaderField("C", "ä\t"),
        ]
        let bytes = FrontResponse(status: 200, headers: headers, length: 1, to: request()).bytes
        #expect(bytes.text == "HTTP/1.1 200 OK\r\nA: b  Evil: 1 \r\nC: ä\t\r\nContent-Length: 1\r\n\r\n")
    }

    @Test func chunksAreFramed() {
        #expect(FrontResponse.chunk([]).isEmpty)
        let part = [UInt8](repeating: 0x61, count: 26)
        #expect(FrontResponse.chunk(part).text == "1a\r\n\(part.text)\r\n")
        #expect(FrontResponse.lastChunk().text == "0\r\n\r\n")
        let trailers = [HeaderField("X", "1\r\n"), HeaderField("Content-Length", "2"), HeaderField("a b", "3")]
        #expect(FrontResponse.lastChunk(trailers: trailers).text == "0\r\nX: 1  \r\n\r\n")
    }

    @Test func aRefusalIsACompleteResponse() {
        let refusal = FrontRefusal(403, "x", "not\r\nallowed")
        #expect(
            refusal.bytes().text
                == "HTTP/1.1 403 Forbidden\r\nDate: \(testDate.value)\r\nContent-Length: 24\r\nConnection: close\r\n"
                + "Content-Type: text/plain; charset=utf-8\r\n\r\nwatchword: not  allowed\n")
        #expect(refusal.bytes(to: "HEAD").text.hasSuffix("\r\n\r\n"))
        #expect(
            FrontRefusal(400, "x", "y", hasBody: false).bytes().text
                == "HTTP/1.1 400 Bad Request\r\nDate: \(testDate.value)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )
        #expect(FrontRefusal.token.bytes().text.contains("\r\nProxy-Authenticate: Basic realm=\"watchword\"\r\n"))
    }

    @Test(arguments: [
        ("Fine", "HTTP/1.1 200 Fine\r\n"), ("", "HTTP/1.1 200 OK\r\n"), ("a\r\nb: c", "HTTP/1.1 200 a  b: c\r\n"),
    ])
    func theReasonPhraseIsKept(reason: String, line: String) {
        let response = FrontResponse(status: 200, reason: reason, headers: [], length: 0, to: request())
        #expect(response.bytes.text.hasPrefix(line))
    }

    @Test func anInterimResponseHasNoFraming() {
        let hints = FrontResponse(
            status: 103, reason: "Hints", headers: [HeaderField("Link", "x")], length: nil, to: request())
        #expect(hints.bytes.text == "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n")
    }
}
