import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The conformance probes that were also sent to squid, px and cntlm.
@Suite struct FrontProbeTests {
    private static let post = "POST http://h/ HTTP/1.1\r\nHost: h\r\n"

    @Test(arguments: [
        ("both lengths", post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("two lengths", post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 400),
        ("unknown coding", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\nGET http://h/2 HTTP/1.1\r\n\r\n", 501),
        ("bad chunk", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n", 400),
        ("obs-fold", post + "X: a\r\n b\r\n\r\n", 400),
        ("bare LF", "GET http://h/ HTTP/1.1\nHost: h\n\n", 400),
        ("space before colon", post + "Content-Length : 5\r\n\r\nhello", 400),
        ("NUL", post + "X: a\u{0}b\r\n\r\n", 400),
        ("two Host fields", "GET http://h/ HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n", 400),
    ])
    func isRefused(probe: String, text: String, status: Int) {
        guard case .refused(let refusal)? = frontItems(text).last else {
            Issue.record("\(probe) is not refused")
            return
        }
        #expect(refusal.status == status)
        #expect(refusal.bytes().text.hasPrefix("HTTP/1.1 \(status) "))
    }

    @Test func anotherHostThanTheTargetIsNotPassedOn() throws {
        let request = try frontRequest("GET http://h/ HTTP/1.1\r\nHost: other\r\n\r\n")
        #expect(try FrontFields(key: "k").request(request).map(\.name) == ["Via"])
    }

    @Test func hopByHopFieldsAreRemoved() throws {
        let request = try frontRequest(
            proxyGet(
                "Connection: X-One, keep-alive", "X-One: 1", "Keep-Alive: 3", "Proxy-Connection: keep-alive",
                "TE: trailers",
                "Trailer: X", "Upgrade: h2c", "Proxy-Authorization: Basic eDp5", "X-Two: 2"))
        let fields = try FrontFields(key: "k").request(request)
        #expect(fields.map(\.name) == ["X-Two", "Via"])
    }

    @Test func pipeliningWorks() {
        #expect(frontItems(proxyGet() + proxyGet() + proxyGet()).count == 6)
    }

    @Test func aWithheldBodyDoesNotDelayTheHead() throws {
        let request = try frontRequest(Self.post + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        #expect(request.expectsContinue && request.body == .sized(5))
    }
}
