import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// Requests, their parameters, cancellation, bodies, status and shutdown.
@Suite struct BrokerFetchTests {
    let stage = Stage()

    @Test(arguments: [
        (#"{"url":"ftp://h/"}"#, "badURL"), (#"{"url":"http://a b/"}"#, "badURL"), (#"{}"#, "invalidParams"),
        (#"{"url":1}"#, "invalidParams"), (#"[1]"#, "invalidParams"),
        (#"{"url":"http://h/","headers":[["X","a\r\nB: c"]]}"#, "invalidHeader"),
        (#"{"url":"http://h/","headers":{"Host":"x"}}"#, "invalidHeader"),
        (#"{"url":"http://h/","method":"A B"}"#, "invalidMethod"),
        (#"{"url":"http://h/","maxInlineBodyBytes":999999999999}"#, "invalidParams"),
        (#"{"url":"http://h/","timeoutMs":0}"#, "invalidParams"),
        (#"{"url":"http://h/","body":{"type":"base64","value":"!"}}"#, "invalidParams"),
        (#"{"url":"http://h/","body":{"type":"attach"}}"#, "invalidParams"),
        (#"{"url":"http://h/","proxy":{"url":"ftp://p/"}}"#, "badURL"),
        (#"{"url":"http://h/","proxy":"http://p/"}"#, "invalidParams"),
        (#"{"url":"http://h/","tls":{"trust":"never"}}"#, "invalidParams"),
        (#"{"url":"http://h/","credential":{"type":"proposed"}}"#, "invalidParams"),
        (#"{"url":"http://h/","credential":{"type":"password","user":"u","password":"p","typo":1}}"#, "invalidParams"),
        (#"{"url":"http://h/","notify":["everything"]}"#, "invalidParams"),
    ])
    func badParametersHaveTheirOwnKindAndStartNothing(params: String, kind: String) {
        let client = stage.connect()
        let heard = client.say(#"{"jsonrpc":"2.0","id":1,"method":"fetch/run","params":\#(params)}"#)
        #expect(heard.map(\.kind) == [kind])
        #expect(stage.transfers.requests.isEmpty)
    }

    @Test("Rules 15 and R18: user and password of the URL are in neither the request nor the list of fetches")
    func userAndPasswordOfTheURLAreNotShown() {
        let client = stage.connect()
        _ = client.fetch("http://bob:hush@h/x")
        #expect(stage.transfers.requests.map(\.url.text) == ["http://h/x"])
        let list = client.say(#"{"jsonrpc":"2.0","id":2,"method":"fetch/list"}"#)
        #expect(list[0]["result"]?["fetches"]?.elements?.first?["url"]?.string == "http://h/x")
        let text = String(decoding: list[0].serialized(), as: UTF8.self)
        #expect(!text.contains("hush"))
    }

    @Test("Rule P2: unknown methods and reserved names are not found")
    func unknownMethodsAndReservedNamesAreNotFound() {
        let client = stage.connect()
        for method in ["foo/bar", "rpc.describe", "auth/challenge", "$/cancelRequest"] {
            #expect(
                client.say(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":{}}"#).map(\.kind) == [
                    "methodNotFound"
                ])
        }
    }

    @Test func cancellingATransferAnswersAtOnceAndIgnoresLateResults() {
        let client = stage.connect()
        _ = client.fetch(id: 3)
        let heard = client.say(#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":3}}"#)
        #expect(heard.map(\.kind) == ["cancelled"])
        #expect(stage.transfers.cancelledCount == 1)
        #expect(client.hear().isEmpty)
        #expect(client.say(#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":3}}"#).isEmpty)
    }

    @Test func aLateResultOfOneFetchIsNotAssignedToAnother() {
        let client = stage.connect()
        _ = client.fetch("http://h/1", id: 1)
        _ = client.fetch("http://h/2", id: 2)
        #expect(
            client.say(#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}"#).map(\.kind) == ["cancelled"])
        #expect(client.hear().isEmpty)
        stage.transfers.respond(200)
        #expect(client.hear().map { $0["id"]?.integer } == [2])
    }

    @Test func fetchCancelEndsTheFetchByName() {
        let client = stage.connect()
        let other = stage.connect()
        _ = client.fetch(id: 3)
        let cancel = #"{"jsonrpc":"2.0","id":4,"method":"fetch/cancel","params":{"fetchId":"f1"}}"#
        #expect(other.say(cancel)[0]["result"]?["cancelled"]?.boolean == false)
        let heard = client.say(cancel)
        #expect(heard.map { $0["id"]?.integer } == [3, 4])
        #expect(heard[0].kind == "cancelled")
        #expect(heard[1]["result"]?["cancelled"]?.boolean == true)
    }

    @Test func aClientThatDisconnectsCancelsItsTransfers() {
        let client = stage.connect()
        _ = client.fetch()
        client.leave()
        #expect(stage.transfers.cancelledCount == 1)
        #expect(stage.transfers.openCount == 0)
    }

    @Test func largeBodiesAreReadInSteps() {
        let client = stage.connect()
        _ = client.fetch(more: #","maxInlineBodyBytes":4"#)
        stage.transfers.respond(200, body: "0123456789")
        let reply = client.hear()[0]["result"]
        #expect(reply?["body"]?["type"]?.string == "handle")
        #expect(reply?["bodyBytes"]?.integer == 10)
        let read = { (count: Int) in
            client.say(
                #"{"jsonrpc":"2.0","id":2,"method":"fetch/read","params":{"fetchId":"f1","maxBytes":\#(count)}}"#)[0]
        }
        let first = read(6)["result"]
        #expect(first?["data"]?["value"]?.string == "012345")
        #expect(first?["eof"]?.boolean == false)
        let second = read(6)["result"]
        #expect(second?["data"]?["value"]?.string == "6789")
        #expect(second?["offsetBytes"]?.integer == 6)
        #expect(second?["eof"]?.boolean == true)
        #expect(read(6).kind == "unknownFetch")
    }

    @Test func aBodyThatNoClientReadsIsDiscarded() {
        let client = stage.connect()
        _ = client.fetch(more: #","maxInlineBodyBytes":0"#)
        stage.transfers.respond(200, body: "body")
        _ = client.hear()
        stage.transfers.endBody(stage.transfers.openBodies[0], .failure(TransferFailure(.timedOut, "no reader")))
        stage.loop.turn()
        let heard = client.say(#"{"jsonrpc":"2.0","id":2,"method":"fetch/read","params":{"fetchId":"f1"}}"#)
        #expect(heard.map(\.kind) == ["unknownFetch"])
    }

    @Test func notificationsAreSentOnlyOnRequest() {
        let client = stage.connect()
        _ = client.fetch(id: 9, more: #","notify":["headers","redirect"]"#)
        stage.transfers.respond(302, [HeaderField("Location", "/next")])
        stage.loop.turn()
        stage.transfers.respond(200, [HeaderField("X", "y")])
        let heard = client.hear()
        #expect(heard.map(\.method) == ["fetch/redirect", "fetch/headers", nil])
        #expect(heard[0]["params"]?["to"]?.string == "http://h/next")
        #expect(heard[1]["params"]?["requestId"]?.integer == 9)
        _ = client.fetch()
        stage.transfers.respond(200)
        #expect(client.hear().count == 1)
    }

    @Test func theSessionIsSharedAndCanBeCleared() {
        let first = stage.connect(.request)
        _ = first.fetch("http://h/a")
        stage.transfers.challenge()
        _ = first.answer(first.hear()[0], bobsAnswer)
        stage.transfers.respond(200)
        _ = first.hear()
        let second = stage.connect()
        _ = second.fetch("http://h/b")
        #expect(stage.transfers.requests.last?.authorization != nil)
        let clear = #"{"jsonrpc":"2.0","id":5,"method":"session/clear","params":{"origin":"http://h"}}"#
        #expect(second.say(clear)[0]["result"]?["removed"]?.integer == 1)
        _ = second.fetch("http://h/c", id: 2)
        #expect(stage.transfers.requests.last?.authorization == nil)
    }

    @Test func theStatusHasTheCounts() {
        let client = stage.connect(.request)
        _ = client.fetch()
        let status = client.say(#"{"jsonrpc":"2.0","id":2,"method":"server/status"}"#)[0]["result"]
        #expect(status?["connections"]?.integer == 1)
        #expect(status?["fetches"]?["running"]?.integer == 1)
        #expect(status?["engine"]?["name"]?.string == "fake")
        #expect(status?["keyring"]?["state"]?.string == "unavailable")
    }

    @Test func aOneShotClientGetsItsReplyAndTheEnd() {
        let client = stage.connect()
        _ = client.fetch()
        stage.broker.inputEnded(client.id)
        #expect(!client.link.isClosed)
        stage.transfers.respond(200)
        #expect(client.hear().map(\.status) == [200])
        #expect(client.link.isClosed)
    }

    @Test func initializeIsAcceptedOnce() {
        let client = stage.connect(.request)
        let again = client.say(
            #"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"client":{"name":"x"},"protocolVersion":1}}"#)
        #expect(again.map(\.kind) == ["invalidRequest"])
        let other = stage.connect()
        let wrong = other.say(
            #"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"client":{"name":"x"},"protocolVersion":2}}"#)
        #expect(wrong.map(\.kind) == ["invalidParams"])
    }

    @Test func shutdownNotifiesRefusesCancelsAndCloses() async {
        let client = stage.connect(.request)
        _ = client.fetch()
        _ = client.hear()
        let (broker, clock) = (stage.broker, stage.clock)
        let ending = Task { await broker.shutDown(reason: "test", grace: .seconds(1)) }
        await stage.settle { clock.sleeperCount == 1 }
        #expect(client.say(#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#).map(\.kind) == [nil, "shuttingDown"])
        clock.advance(by: .seconds(1))
        await stage.settle { client.link.isClosed }
        await ending.value
        #expect(client.hear().map(\.kind) == ["cancelled"])
        #expect(client.link.isClosed)
    }

    @Test("Rule 23: a redirect to a denied host is not followed")
    func aRedirectToADeniedHostIsNotFollowed() throws {
        let denied = try HostPattern("secret.example")
        let stage = Stage { $0.hosts = HostRules(denied: [denied]) }
        let client = stage.connect(nil)
        _ = client.fetch()
        stage.transfers.respond(302, [HeaderField("Location", "http://secret.example/")])
        #expect(client.hear().map(\.kind) == ["denied"])
        #expect(stage.transfers.requests.count == 1)
    }
}
