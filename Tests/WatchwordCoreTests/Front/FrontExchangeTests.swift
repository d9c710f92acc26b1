import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The fetches that answer requests to fronts.
@Suite struct FrontExchangeTests {
    private func request(_ fields: String = "") throws -> FrontRequest {
        try frontRequest("POST http://h/x HTTP/1.1\r\nHost: h\r\n\(fields)\r\n")
    }

    private func exchange(_ fields: String = "", _ body: FrontBody = .none, usesCredentials: Bool = true) throws
        -> FrontExchange
    {
        try FrontExchange(
            request(fields), url: FetchURL("http://h/x"), headers: [HeaderField("A", "b")], body: body,
            usesCredentials: usesCredentials)
    }

    private func request(_ exchange: FrontExchange) throws -> FetchRequest {
        var request = try FetchRequest(exchange.params, subscription: nil, inSteps: true)
        exchange.adapt(&request)
        return request
    }

    @Test func aRequestBecomesAFetchThatFollowsNoRedirect() throws {
        let request = try request(exchange("", .bytes([1, 2])))
        #expect(request.method == "POST" && request.maxRedirects == 0 && request.body == .bytes([1, 2]))
        #expect(request.headers == [HeaderField("A", "b")])
        #expect(request.interaction == .agent && request.useStorage && request.preemption == .session)
        #expect(request.originLogin == .broker && !request.options.opensTunnel)
        #expect(request.options.delivery == .fromHeader && request.options.awaitsBody)
    }

    @Test func withoutCredentialsNothingIsStoredSentOrAsked() throws {
        let request = try request(exchange(usesCredentials: false))
        #expect(request.interaction == .none && !request.useStorage && request.preemption == .never)
    }

    @Test func theLoginOfTheProgramIsNotTheBrokers() throws {
        let request = try request(exchange("Authorization: Bearer own\r\n"))
        #expect(request.originLogin == .program(secret("Bearer own")))
    }

    @Test func anotherProtocolIsAskedForOnTheConnectionToTheOrigin() throws {
        let request = try request(exchange("Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", .stream(size: nil)))
        #expect(request.options.switchesProtocol)
        #expect(
            Array(request.headers.suffix(2)) == [
                HeaderField("Connection", "Upgrade"), HeaderField("Upgrade", "websocket"),
            ])
        #expect(request.options.omittedHeaders == ["accept", "user-agent", "expect"])
        let other = try self.request(exchange("Upgrade: websocket\r\n"))
        #expect(!other.options.switchesProtocol && other.headers == [HeaderField("A", "b")])
    }

    @Test func trailersAreAskedFor() throws {
        let request = try request(exchange("TE: trailers, gzip\r\n"))
        #expect(Array(request.headers.suffix(2)) == [HeaderField("Connection", "TE"), HeaderField("TE", "trailers")])
    }

    @Test func connectOpensATunnel() throws {
        let request = try request(FrontExchange(tunnelTo: "h", port: 8443, usesCredentials: true))
        #expect(request.originLogin == .tunnel && request.options.opensTunnel)
        #expect(request.url.origin.text == "https://h:8443")
    }

    @Test(arguments: [
        (ErrorKind.denied, 403), (.challengeCancelled, 403), (.badURL, 400), (.invalidMethod, 501), (.tooLarge, 502),
        (.busy, 503),
        (.timedOut, 504), (.notSupported, 502), (.malformedResponse, 502), (.connectionLost, 502),
        (.cannotConnect, 502), (.nameNotResolved, 502),
    ])
    func aFailureHasAStatus(kind: ErrorKind, status: Int) {
        let refusal = FrontRefusal(FetchFailure(kind, "what happened"))
        #expect(refusal.status == status && refusal.text == "what happened")
    }

    @Test(arguments: [(403, 403), (451, 451), (503, 503), (504, 504), (500, 502), (404, 502), (401, 502), (nil, 502)])
    func aRefusedConnectKeepsItsMeaning(status: Int?, passed: Int) {
        let failure = TransferFailure(.cannotConnect, "refused", cause: .proxyRefused(status: status))
        #expect(FrontRefusal(FetchFailure(failure)).status == passed)
    }

    @Test func aMissingLoginToTheUpstreamNamesItsReason() {
        func text(_ cause: Unanswered.NoRespondent?, _ schemes: [Unanswered.Scheme] = [], hasAgent: Bool = true)
            -> String
        {
            let unanswered = Unanswered(schemes: schemes, cause: cause, isOfProxy: true)
            return FrontRefusal.upstreamLogin(unanswered, hasAgent: hasAgent).text
        }
        #expect(text(.noAgent, hasAgent: false).contains("start an agent"))
        #expect(!text(.noAgent).contains("start an agent"))
        #expect(text(nil, [Unanswered.Scheme("NTLM", .notListed)]).contains("NTLM (notListed)"))
        #expect(FrontRefusal.upstreamLogin(nil, hasAgent: true).text.contains("rejected"))
    }

    @Test(arguments: [
        ("1.1", [], false), ("1.1", ["close"], true), ("1.1", ["Keep-Alive, Close"], true), ("1.0", [], true),
        ("1.0", ["keep-alive"], false),
    ])
    func aResponseMayEndItsConnection(version: String, connection: [String], ends: Bool) {
        let response = TransferResponse(
            status: 200, httpVersion: version, headers: HeaderBlock(connection.map { HeaderField("Connection", $0) }))
        #expect(response.endsConnection == ends)
    }
}
