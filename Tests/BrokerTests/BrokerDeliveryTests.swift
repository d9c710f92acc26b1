import Broker
import JSONText
import Testing
import WatchwordProtocol

/// Subscriptions, and the requests `canAuthenticate` and `useStorage`.
@Suite struct BrokerDeliveryTests {
    private let stage = Stage()

    /// Such a client needs no second kind of delivery.
    @Test func aClientThatCannotAnswerSendsTheCredentialWithItsNextFetch() {
        let client = stage.connect(nil)
        _ = client.fetch()
        stage.transfers.challenge("Staff")
        let first = client.hear().first?["result"]
        #expect(first?["status"]?.integer == 401)
        #expect(first?["unanswered"]?.elements?.first?["reason"]?.string == "noRespondent")
        let credential = #"{"type":"password","user":"bob","password":"pw"}"#
        _ = client.say(
            #"{"jsonrpc":"2.0","id":2,"method":"fetch/run","params":{"url":"http://host/","credential":\#(credential)}}"#
        )
        stage.transfers.challenge("Staff")
        stage.transfers.respond(200)
        #expect(client.hear().replies.map(\.status) == [200])
    }

    // MARK: Subscriptions

    @Test func aSubscriptionCanBeEnded() {
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        #expect(client.hear().of("auth/challenge").count == 1)
        let ended = client.say(#"{"jsonrpc":"2.0","id":9,"method":"auth/unsubscribe"}"#)
        #expect(ended.of("$/cancelRequest").count == 1)
        #expect(ended.replies.map(\.status) == [401, nil])
        _ = client.fetch(id: 3)
        stage.transfers.challenge()
        #expect(client.hear().map(\.status) == [401])
    }

    @Test func subscribingWithoutInitializeIsEnough() {
        let client = stage.connect(nil)
        #expect(client.call("auth/subscribe", #"{"hosts":["*.example.com","h"]}"#)?["result"] == [:])
        _ = client.fetch()
        stage.transfers.challenge()
        #expect(client.hear().of("auth/challenge").count == 1)
        _ = client.fetch("http://example.com/", id: 2)
        stage.transfers.challenge()
        #expect(client.hear().map(\.status) == [401])
    }

    @Test func aBadSubscriptionIsRefused() {
        let client = stage.connect(nil)
        for params in [
            #"{"hosts":"h"}"#, #"{"hosts":["a b"]}"#, #"{"methods":["basic"]}"#, #"{"mode":"all"}"#,
            #"{"hosts":[\#(Array(repeating: "\"h\"", count: Limits.subscriptionHosts + 1).joined(separator: ","))]}"#,
        ] {
            #expect(client.call("auth/subscribe", params)?.kind == "invalidParams", "\(params)")
        }
    }

    // MARK: canAuthenticate and useStorage

    private func consulting() -> StageClient {
        let client = stage.connect(.request)
        _ = client.call("auth/subscribe", #"{"asksCanAuthenticate":true,"asksUseStorage":true}"#)
        _ = client.fetch()
        stage.transfers.challenge("Staff")
        return client
    }

    @Test("Rule 3: canAuthenticate and useStorage are requests that precede the challenge")
    func canAuthenticateAndUseStorageAreRequests() {
        let client = consulting()
        let can = client.hear()
        #expect(can.map(\.method) == ["auth/canAuthenticate"])
        #expect(can[0]["params"]?["protectionSpace"]?["realm"]?.string == "Staff")
        let use = client.answer(can[0], #"{"answer":true}"#)
        #expect(use.map(\.method) == ["auth/useStorage"])
        let asked = client.answer(use[0], #"{"answer":true}"#)
        #expect(asked.map(\.method) == ["auth/challenge"])
    }

    @Test("Rule 3: canAuthenticate counts as answered yes by a client that does not implement it")
    func notImplementedMeansYes() {
        let client = consulting()
        let can = client.hear()
        let error = #"{"jsonrpc":"2.0","id":\#(can[0]["id"]?.integer ?? 0),"error":{"code":-32601,"message":""}}"#
        #expect(client.say(error).map(\.method) == ["auth/useStorage"])
    }

    @Test("Rule 26: after a malformed answer to canAuthenticate nothing more is asked")
    func aMalformedAnswerUsesNothing() {
        for reply in [
            #""result":{"answer":"yes"}"#, #""result":{"answer":true,"more":1}"#, #""result":true"#,
            #""error":{"code":1,"message":"x"}"#,
        ] {
            let client = consulting()
            let can = client.hear()
            let said = client.say(#"{"jsonrpc":"2.0","id":\#(can[0]["id"]?.integer ?? 0),\#(reply)}"#)
            #expect(said.map(\.status) == [401], "\(reply)")
        }
    }

    @Test("Rule 9: canAuthenticate has a deadline, after which nothing more is asked")
    func noAnswerInTimeUsesNothing() async {
        let client = consulting()
        _ = client.hear()
        await stage.settle { stage.clock.sleeperCount > 0 }
        stage.clock.advance(by: Limits.challengeDeadline)
        await stage.settle { !stage.broker.hasFetches }
        let after = client.hear()
        #expect(after.map(\.method) == ["$/cancelRequest", nil])
        #expect(after.last?.status == 401)
    }

    @Test func aRedirectIsReportedBeforeTheQuestionsOfTheNextHop() {
        let client = consulting()
        let use = client.answer(client.hear()[0], #"{"answer":true}"#)
        let asked = client.answer(use[0], #"{"answer":true}"#)
        _ = client.answer(asked[0], bobsAnswer)
        stage.transfers.respond(200)
        _ = client.hear()
        _ = client.fetch("http://elsewhere/", id: 2, more: #","notify":["redirect"]"#)
        stage.transfers.respond(302, [HeaderField("Location", "http://h/")])
        #expect(client.hear().map(\.method) == ["fetch/redirect", "auth/canAuthenticate"])
    }

    @Test func aFetchThatIsCancelledWithdrawsItsQuestion() {
        let client = consulting()
        _ = client.hear()
        let said = client.say(#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}"#)
        #expect(said.map(\.method) == ["$/cancelRequest", nil])
        #expect(said.last?["error"]?["code"]?.integer == -32800)
    }

    @Test func aClientThatHasShutDownItsSideIsNotConsulted() {
        let client = stage.connect(nil)
        _ = client.call("auth/subscribe", #"{"delivery":"notification","asksCanAuthenticate":true}"#)
        _ = client.fetch()
        stage.broker.inputEnded(client.id)
        stage.transfers.challenge()
        #expect(client.hear().map(\.status) == [401])
        #expect(client.link.isClosed)
    }
}
