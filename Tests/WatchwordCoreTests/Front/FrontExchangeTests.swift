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

    private func plan(_ exchange: FrontExchange) throws -> FetchPlan {
        var plan = try FetchPlan(exchange.params, subscription: nil, inSteps: true)
        exchange.adapt(&plan)
        return plan
    }

    @Test func aRequestBecomesAFetchThatFollowsNoRedirect() throws {
        let plan = try plan(exchange("", .bytes([1, 2])))
        #expect(plan.method == "POST" && plan.maxRedirects == 0 && plan.body == .bytes([1, 2]))
        #expect(plan.headers == [HeaderField("A", "b")])
        #expect(plan.interaction == .agent && plan.useStorage && plan.preemption == .session)
        #expect(plan.originLogin == .broker && !plan.options.opensTunnel)
        #expect(plan.options.delivery == .fromHeader && plan.options.awaitsBody)
    }

    @Test func withoutCredentialsNothingIsStoredSentOrAsked() throws {
        let plan = try plan(exchange(usesCredentials: false))
        #expect(plan.interaction == .none && !plan.useStorage && plan.preemption == .never)
    }

    @Test func theLoginOfTheProgramIsNotTheBrokers() throws {
        let plan = try plan(exchange("Authorization: Bearer own\r\n"))
        #expect(plan.originLogin == .program(secret("Bearer own")))
    }

    @Test func anotherProtocolIsAskedForOnTheConnectionToTheOrigin() throws {
        let plan = try plan(exchange("Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", .stream(size: nil)))
        #expect(plan.options.switchesProtocol)
        #expect(
            Array(plan.headers.suffix(2)) == [
                HeaderField("Connection", "Upgrade"), HeaderField("Upgrade", "websocket"),
            ])
        #expect(plan.options.omittedHeaders == ["accept", "user-agent", "expect"])
        let other = try self.plan(exchange("Upgrade: websocket\r\n"))
        #expect(!other.options.switchesProtocol && other.headers == [HeaderField("A", "b")])
    }

    @Test func trailersAreAskedFor() throws {
        let plan = try plan(exchange("TE: trailers, gzip\r\n"))
        #expect(Array(plan.headers.suffix(2)) == [HeaderField("Connection", "TE"), HeaderField("TE", "trailers")])
    }

    @Test func connectOpensATunnel() throws {
        let plan = try plan(FrontExchange(tunnelTo: "h", port: 8443, usesCredentials: true))
        #expect(plan.originLogin == .tunnel && plan.options.opensTunnel)
        #expect(plan.url.origin.text == "https://h:8443")
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
