import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// RFC 9110 section 7.6.
@Suite struct FrontFieldsTests {
    private static let nonce = "0123456789abcdef"
    private static let fields = FrontFields(key: "k") { nonce }
    private static let own = fields.pseudonym(nonce)
    private var fields: FrontFields { Self.fields }
    private var own: String { Self.own }

    private func request(_ headers: [HeaderField], minorVersion: Int = 1) throws -> FrontRequest {
        FrontRequest(
            method: "GET", target: .absolute(try FetchURL("http://h/")), minorVersion: minorVersion, headers: headers)
    }

    @Test(arguments: [
        "Connection", "keep-alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Host",
        "Content-Length", "Expect", "Authorization", "Proxy-Authorization", "Proxy-Anything", "Cookie2",
        "HTTP2-Settings",
    ])
    func aFieldOfTheConnectionIsRemoved(name: String) throws {
        let sent = try fields.request(request([HeaderField("A", "b"), HeaderField(name, "c")]))
        #expect(sent == [HeaderField("A", "b"), HeaderField("Via", "1.1 \(own)")])
    }

    @Test func aFieldThatConnectionNamesIsRemoved() throws {
        let headers = [
            HeaderField("x-one", "1"), HeaderField("Connection", "close , X-One"), HeaderField("Connection", "x-two"),
            HeaderField("X-Two", "2"), HeaderField("X-Three", "3"), HeaderField("Close", "4"),
        ]
        #expect(try fields.request(request(headers)).map(\.name) == ["X-Three", "Via"])
        #expect(try fields.response(status: 200, headers, to: request([])).map(\.name) == ["X-Three", "Date", "Via"])
    }

    @Test func viaNamesTheReceivedVersionAfterOtherProxies() throws {
        let sent = try fields.request(request([HeaderField("Via", "1.1 squid")], minorVersion: 0))
        #expect(sent == [HeaderField("Via", "1.1 squid"), HeaderField("Via", "1.0 \(own)")])
    }

    @Test(arguments: [
        ("OPTIONS", ["5"], ["4"]), ("OPTIONS", ["1"], ["0"]), ("OPTIONS", ["007"], ["6"]), ("OPTIONS", [], []),
        ("OPTIONS", ["99999999999999999999"], ["\(Int.max - 1)"]), ("GET", ["0"], ["0"]),
        ("GET", ["x", "5"], ["x", "5"]),
    ])
    func maxForwardsIsCounted(method: String, values: [String], sent: [String]) throws {
        for connection in method == "OPTIONS" ? ["x", "Max-Forwards"] : ["x"] {
            var request = try request(
                [HeaderField("Connection", connection)] + values.map { HeaderField("max-forwards", $0) })
            request.method = method
            #expect(try fields.request(request).values(of: "Max-Forwards") == sent)
        }
    }

    @Test(arguments: [
        (["0"], FrontRefusal.lastRecipient), (["000"], .lastRecipient), (["5", "0"], .maxForwards),
        ([""], .maxForwards),
        (["-1"], .maxForwards), (["5, 0"], .maxForwards), (["x"], .maxForwards), (["٣"], .maxForwards),
    ])
    func theFrontAnswersTheLastRequest(values: [String], refusal: FrontRefusal) throws {
        var request = try request(values.map { HeaderField("Max-Forwards", $0) })
        request.method = "OPTIONS"
        #expect(throws: refusal) { try fields.request(request) }
        #expect(
            FrontRefusal.lastRecipient.bytes().text.hasPrefix(
                "HTTP/1.1 200 OK\r\nDate: \(testDate.value)\r\nContent-Length: 0\r\n"))
    }

    @Test(arguments: [
        (["1.1 \(own)"], true), (["1.0 squid, 1.1 \(own.uppercased()) (c)"], true),
        (["1.0 a", "2 b,1.1\t\(own)"], true),
        (["1.1 \(own)0"], false), (["1.1 \(own.dropLast())"], false), (["1.1 watchword"], false), ([own], false),
        ([], false),
        (["1.1 \(FrontFields(key: "other") { nonce }.pseudonym(nonce))"], false),
    ])
    func aLoopIsRefused(via: [String], isLoop: Bool) throws {
        let headers = via.map { HeaderField("Via", $0) } + [HeaderField("Connection", "Via")]
        let request = try request(headers)
        if isLoop {
            #expect { try fields.request(request) } throws: { ($0 as? FrontRefusal)?.status == 508 }
        } else {
            #expect(try fields.request(request) == [HeaderField("Via", "1.1 \(own)")])
        }
    }

    @Test func noServerRecognizesTheUserByVia() throws {
        let fields = FrontFields(key: "k")
        let names = try (0..<20).map { _ in try fields.request(request([])).map(\.value) }
        #expect(Set(names).count == 20)
        let again = try #require(names.first?.first)
        #expect(throws: FrontRefusal.self) { try fields.request(request([HeaderField("Via", again)])) }
    }

    @Test func aResponseLosesTheFieldsOfItsConnection() throws {
        let names = ["Connection", "Content-Length", "Transfer-Encoding", "Proxy-Authenticate", "Proxy-Status"]
        let headers = names.map { HeaderField($0, "x") }
        let kept = [
            HeaderField("WWW-Authenticate", "Basic"), HeaderField("Set-Cookie", "a"), HeaderField("Set-Cookie", "b"),
        ]
        #expect(
            try fields.response(status: 200, headers + kept, to: request([])) == kept + [
                testDate, HeaderField("Via", "1.1 \(own)"),
            ])
    }

    @Test(arguments: [
        (200, "Date", 1), (404, "date", 1), (200, "Age", 2), (503, "Age", 2), (103, "Age", 1), (101, "Age", 1),
    ])
    func aMissingDateIsAdded(status: Int, name: String, count: Int) throws {
        let sent = try fields.response(status: status, [HeaderField(name, "x")], to: request([]))
        #expect(sent.first == HeaderField(name, "x") && sent.dropLast().count == count)
        #expect(sent.values(of: "Date") == (name == "Age" ? (count == 2 ? [testDate.value] : []) : ["x"]))
    }

    @Test func aServerCannotDemandALoginToTheFront() {
        #expect { try fields.response(status: 407, [], to: request([])) } throws: {
            ($0 as? FrontRefusal)?.status == 502
        }
    }

    @Test(arguments: [
        ([], true), (["websocket"], true), (["WebSocket"], true), (["h2c"], false), (["websocket, HTTP/2.0"], false),
    ])
    func aServerSwitchesToTheRequestedProtocolOnly(protocols: [String], isPassedOn: Bool) throws {
        let headers = protocols.map { HeaderField("Upgrade", $0) }
        let passed = try? fields.response(status: 101, headers, to: request([]))
        #expect((passed != nil) == isPassedOn)
        #expect(throws: Never.self) { try fields.response(status: 200, headers, to: request([])) }
    }

    @Test(arguments: [
        (["trailers"], true), (["gzip", "Trailers"], true), (["gzip;q=1, trailers"], true), (["gzip"], false),
        ([], false),
    ])
    func trailersAreForWhoAcceptsThem(te: [String], accepts: Bool) throws {
        let request = try request(te.map { HeaderField("TE", $0) })
        let trailers = [
            HeaderField("X-Sum", "1"), HeaderField("set-cookie", "a"), HeaderField("WWW-Authenticate", "Basic"),
        ]
        #expect(
            FrontFields.trailers(HeaderBlock(trailers), to: request) == (accepts ? [HeaderField("X-Sum", "1")] : []))
        let sent = try fields.response(status: 200, [HeaderField("Trailer", "X-Sum")], to: request)
        #expect(sent.contains { $0.isNamed("Trailer") } == accepts)
    }

    @Test func anHTTP10ProgramGetsNoTrailers() throws {
        let request = try request([HeaderField("TE", "trailers")], minorVersion: 0)
        #expect(FrontFields.trailers([HeaderField("X-Sum", "1")], to: request).isEmpty)
    }
}
