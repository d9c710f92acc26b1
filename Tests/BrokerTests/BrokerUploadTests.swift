import Glibc
import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// Request bodies that are received through a second connection.
@Suite struct BrokerUploadTests {
    private let stage = Stage()

    private func start(_ client: StageClient, _ body: String = #"{"type":"attach","sizeBytes":9}"#) throws -> String {
        let reply = client.call("fetch/start", #"{"url":"http://h/","method":"PUT","body":\#(body)}"#)
        return try #require(reply?["result"]?["attachToken"]?.string)
    }

    private func feed(_ token: String) -> JSON? {
        let second = stage.connect()
        let reply = second.call("fetch/attach", #"{"token":"\#(token)","side":"request"}"#)
        _ = second.link.giveSocket(open("/dev/null", O_RDWR))
        stage.loop.turn()
        return reply
    }

    /// Responds with a challenge after the body was sent without a copy.
    private func challengeAfterBody() {
        var response = TransferResponse(status: 401, headers: [HeaderField("WWW-Authenticate", "Basic realm=\"r\"")])
        response.requestBody = .spent
        stage.transfers.complete(.success(response))
    }

    /// After the login the broker requests the body again; returns the messages that its client receives then.
    private func askedForTheBody() throws -> (client: StageClient, heard: [JSON]) {
        let client = stage.connect(.request)
        subscribe(client, asksNeedBody: true)
        _ = try start(client)
        challengeAfterBody()
        return (client, client.answer(client.hear()[0], Self.login))
    }

    private static let login =
        #"{"action":"credential","credential":{"type":"password","user":"u","password":"p"}}"#

    private func subscribe(_ client: StageClient, asksNeedBody: Bool) {
        #expect(client.call("auth/subscribe", #"{"asksNeedBody":\#(asksNeedBody)}"#)?["result"] != nil)
    }

    @Test(arguments: [9, nil] as [Int?]) func theBodyGoesToTheTransfer(size: Int?) throws {
        let client = stage.connect()
        let token = try start(client, size.map { #"{"type":"attach","sizeBytes":\#($0)}"# } ?? #"{"type":"attach"}"#)
        guard case .stream(let stream)? = stage.transfers.requests[0].body else {
            Issue.record("no stream")
            return
        }
        #expect(stream.size == size)
        #expect(stage.transfers.sources == [stream.source: true])
        #expect(feed(token)?["result"] == [:])
        #expect(stage.transfers.fedSources == [stream.source])
        #expect(feed(token)?.kind == "unknownFetch")
        stage.transfers.complete(.failure(TransferFailure(.connectionLost, "gone")))
        stage.loop.turn()
        #expect(stage.transfers.sources.isEmpty)
    }

    @Test func aRequestWithoutAnAttachedBodyHasNothingToAttach() throws {
        let client = stage.connect()
        #expect(feed(try start(client, #"{"type":"string","value":"x"}"#))?.kind == "unknownFetch")
    }

    @Test func fetchRunRefusesAnAttachedBody() {
        let client = stage.connect()
        let reply = client.call("fetch/run", #"{"url":"http://h/","body":{"type":"attach"}}"#)
        #expect(reply?.kind == "invalidParams")
    }

    @Test func aCopiedBodyIsSentAgainWithoutARequest() throws {
        let client = stage.connect(.request)
        _ = try start(client)
        var response = TransferResponse(status: 401, headers: [HeaderField("WWW-Authenticate", "Basic realm=\"r\"")])
        response.requestBody = .copied
        stage.transfers.complete(.success(response))
        let challenge = client.hear()[0]
        _ = client.answer(challenge, Self.login)
        #expect(stage.transfers.requests.count == 2)
        #expect(stage.transfers.requests[1].body == stage.transfers.requests[0].body)
    }

    @Test(arguments: [true, false]) func aBodyWithoutACopyIsRequestedOrTheFetchFails(isAsked: Bool) throws {
        let client = stage.connect(.request)
        subscribe(client, asksNeedBody: isAsked)
        let token = try start(client)
        #expect(stage.transfers.sources.values.map { $0 } == [!isAsked])
        #expect(feed(token)?["result"] == [:])
        challengeAfterBody()
        let heard = client.answer(client.hear()[0], Self.login)
        guard isAsked else {
            #expect(heard.map(\.method) == ["auth/resolved", "fetch/completed"])
            #expect(heard[1]["params"]?["error"]?["data"]?["kind"]?.string == "bodyNotReplayable")
            return
        }
        #expect(heard.map(\.method) == ["fetch/needBody"])
        #expect(stage.transfers.requests.count == 1)
        _ = client.answer(heard[0], #"{"body":{"type":"attach","sizeBytes":9}}"#)
        #expect(stage.transfers.requests.count == 2)
        #expect(feed(token)?["result"] == [:])
        #expect(Set(stage.transfers.fedSources).count == 2)
        #expect(stage.transfers.requests[1].authorization != nil)
    }

    /// The reused connection was closed, and libcurl had to send the request again on another one.
    @Test(arguments: [true, false])
    func aBodyLostWithAReusedConnectionIsRequestedOrTheFetchFails(isAsked: Bool) throws {
        let client = stage.connect(.request)
        subscribe(client, asksNeedBody: isAsked)
        _ = try start(client)
        var failure = TransferFailure(.requestBodyGone, "gone")
        failure.requestBody = .spent
        var asked = 0
        while asked < 100 {
            stage.transfers.complete(.failure(failure))
            let heard = client.hear()
            guard heard.map(\.method) == ["fetch/needBody"] else {
                #expect(heard.map(\.method) == ["fetch/completed"])
                let kind = heard.first?["params"]?["error"]?["data"]?["kind"]?.string
                #expect(kind == (isAsked ? "connectionLost" : "bodyNotReplayable"))
                break
            }
            asked += 1
            _ = client.answer(heard[0], #"{"body":{"type":"attach","sizeBytes":9}}"#)
            #expect(stage.transfers.requests.count == asked + 1)
        }
        #expect(asked == (isAsked ? Limits.authenticationRounds : 0))
        #expect(stage.transfers.sources.isEmpty)
    }

    @Test func aResponseMayBeginBeforeItsRequestIsAttached() throws {
        let client = stage.connect()
        let token = try start(client)
        stage.transfers.respond(200, body: "early")
        #expect(client.hear().map(\.method) == ["fetch/headers"])
        #expect(feed(token)?["result"] == [:])
        stage.loop.turn()
        #expect(stage.transfers.fedSources.count == 1)
        #expect(stage.transfers.sources.count == 1)
        client.leave()
        stage.loop.turn()
        #expect(stage.transfers.sources.isEmpty)
    }

    @Test func theBodyMayComeInline() throws {
        let (client, heard) = try askedForTheBody()
        _ = client.answer(heard[0], #"{"body":{"type":"string","value":"again"}}"#)
        #expect(stage.transfers.requests[1].body == .bytes(Array("again".utf8)))
        #expect(stage.transfers.sources.isEmpty)
    }

    @Test(arguments: [
        #""result":{}"#, #""result":{"body":{"type":"attach"},"more":1}"#, #""result":{"body":{"type":"x"}}"#,
        #""error":{"code":-32601,"message":"no"}"#,
    ])
    func anInvalidReplyToNeedBodyEndsTheFetch(_ answer: String) throws {
        let (client, heard) = try askedForTheBody()
        let end = client.say(#"{"jsonrpc":"2.0","id":\#(heard[0]["id"]?.integer ?? 0),\#(answer)}"#)
        #expect(end.map(\.method) == ["auth/resolved", "fetch/completed"])
        #expect(end[1]["params"]?["error"]?["data"]?["kind"]?.string == "bodyNotReplayable")
        #expect(stage.transfers.requests.count == 1)
    }

    @Test func aMissingBodyEndsTheWaitAtItsDeadline() async throws {
        let (client, _) = try askedForTheBody()
        await stage.settle { stage.clock.sleeperCount >= 1 }
        stage.clock.advance(by: Limits.challengeDeadline)
        var heard: [JSON] = []
        await stage.settle {
            heard += client.hear()
            return heard.contains { $0.method == "fetch/completed" }
        }
        #expect(heard.contains { $0.method == "$/cancelRequest" })
        #expect(heard.contains { $0["params"]?["error"]?["data"]?["kind"]?.string == "bodyNotReplayable" })
    }

    @Test(arguments: [false, true]) func aDigestThatCoversTheBodyNeedsItInline(isProxyContext: Bool) throws {
        let client = stage.connect(.request)
        _ = try start(client, #"{"type":"attach","sizeBytes":9},"proxy":{"url":"http://p:3128"}"#)
        let name = isProxyContext ? "Proxy-Authenticate" : "WWW-Authenticate"
        var response = TransferResponse(
            status: isProxyContext ? 407 : 401,
            headers: [HeaderField(name, "Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\"")])
        response.isFromProxy = isProxyContext
        stage.transfers.complete(.success(response))
        let heard = client.answer(client.hear()[0], Self.login)
        #expect(heard.map(\.method) == ["auth/resolved", "fetch/completed"])
        #expect(heard[1]["params"]?["error"]?["data"]?["kind"]?.string == "notSupported")
    }

    @Test func aCancelledFetchWithdrawsItsNeedBodyRequest() throws {
        let (client, _) = try askedForTheBody()
        let heard = client.say(#"{"jsonrpc":"2.0","id":9,"method":"fetch/cancel","params":{"fetchId":"f1"}}"#)
        #expect(heard.contains { $0.method == "$/cancelRequest" })
        #expect(heard.contains { $0.method == "fetch/completed" })
        #expect(stage.transfers.sources.isEmpty)
    }
}
