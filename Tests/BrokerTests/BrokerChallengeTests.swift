import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// Challenges between a fetch and its client: asked once, answered once, and always ended.
@Suite struct BrokerChallengeTests {
    let stage = Stage()

    @Test func aChallengeGoesToTheClientAndItsAnswerToTheServer() {
        let client = stage.connect(.request)
        _ = client.fetch("http://h/a/page")
        stage.transfers.challenge("Staff")
        let asked = client.hear()
        #expect(asked.map(\.method) == ["auth/challenge"])
        let params = asked[0]["params"]
        #expect(params?["protectionSpace"]?["realm"]?.string == "Staff")
        #expect(params?["url"]?.string == "http://h/a/page")
        #expect(params?["requester"]?["name"]?.string == "tester")
        #expect(params?["requester"]?["pid"]?.integer == 4711)
        #expect(params?["deadlineMs"]?.integer == 120_000)
        #expect(stage.broker.hasQuestions)
        #expect(client.answer(asked[0], bobsAnswer).isEmpty)
        #expect(!stage.broker.hasQuestions)
        stage.transfers.respond(200, body: "page")
        let reply = client.hear().replies
        #expect(reply.map(\.status) == [200])
        #expect(reply[0]["result"]?["body"]?["value"]?.string == "page")
        #expect(reply[0]["result"]?["auth"]?["source"]?.string == "client")
        #expect(stage.transfers.requests.map { $0.authorization != nil } == [false, true])
    }

    @Test func aClientWithoutASubscriptionGetsTheResponseAndNoChallenge() {
        for delivery in [nil, ChallengeDelivery.none] {
            let client = stage.connect(delivery)
            _ = client.say("")
            _ = client.fetch()
            stage.transfers.challenge()
            #expect(client.hear().map(\.status) == [401])
        }
    }

    @Test("Rules 8 and P12: a second answer is ignored")
    func aSecondAnswerIsHarmless() {
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        let asked = client.hear()
        _ = client.answer(asked[0], bobsAnswer)
        #expect(client.answer(asked[0], bobsAnswer).isEmpty)
        #expect(stage.transfers.requests.count == 2)
        stage.transfers.respond(200)
        #expect(client.hear().replies.map(\.status) == [200])
    }

    @Test("Rule 9: a challenge past its deadline counts as unanswered")
    func theDeadlineCountsAsNoAnswer() async {
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        let asked = client.hear()
        await stage.settle { stage.clock.sleeperCount == 1 }
        stage.clock.advance(by: .seconds(119))
        await stage.settle()
        #expect(client.hear().isEmpty)
        stage.clock.advance(by: .seconds(1))
        await stage.settle { stage.transfers.openCount == 0 && !stage.broker.hasQuestions }
        let heard = client.hear()
        #expect(heard.map(\.method) == ["$/cancelRequest", nil])
        #expect(heard[0]["params"]?["id"]?.integer == asked[0]["id"]?.integer)
        #expect(heard[1].status == 401)
        #expect(client.answer(asked[0], bobsAnswer).isEmpty)
        #expect(stage.transfers.requests.count == 1)
    }

    @Test("Rule 12: cancel fails the fetch and notifies the client")
    func cancelFailsTheFetchAndNotifiesTheClient() {
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        let asked = client.hear()
        let heard = client.answer(asked[0], #"{"action":"cancel"}"#)
        #expect(heard.map(\.method) == ["auth/cancelled", nil])
        #expect(heard[0]["params"]?["challengeId"]?.string == asked[0]["params"]?["challengeId"]?.string)
        #expect(heard[1].kind == "challengeCancelled")
    }

    @Test(
        arguments: [(-32601, nil, 401), (-32800, "challengeCancelled", nil), (-32000, nil, 401)]
            as [(Int, String?, Int?)])
    func anErrorReplyStandsForAnAnswer(code: Int, kind: String?, status: Int?) {
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        let asked = client.hear()
        let heard = client.say(
            #"{"jsonrpc":"2.0","id":\#(asked[0]["id"]?.integer ?? 0),"error":{"code":\#(code),"message":"m"}}"#)
        #expect(heard.last?.kind == kind)
        #expect(heard.last?.status == status)
        #expect(stage.transfers.requests.count == 1)
    }

    @Test("Rule P13: a reply of a client with both result and error is a cancel")
    func aReplyOfAClientWithBothResultAndErrorIsACancel() {
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        let asked = client.hear()
        let heard = client.say(
            #"{"jsonrpc":"2.0","id":\#(asked[0]["id"]?.integer ?? 0),"result":\#(bobsAnswer),"error":{"code":1,"message":"m"}}"#
        )
        #expect(heard.last?.kind == "challengeCancelled")
        #expect(stage.transfers.requests.count == 1)
    }

    @Test(
        "Rules P15 and 26: an invalid answer sends nothing",
        arguments: [
            #"{"action":"credential","credential":{"type":"password","user":"bob","password":"pw","persistance":"none"}}"#,
            #"{"action":"credential","credential":{"type":"password","user":"bob","password":"pw"},"remember":true}"#,
            #"{"action":"allow"}"#, #"{}"#, #"null"#,
            #"{"action":"credential","credential":{"type":"password","user":"bob"}}"#,
        ])
    func anInvalidAnswerSendsNothing(answer: String) {
        let client = stage.connect(.request)
        _ = client.fetch(more: #","credential":{"type":"password","user":"eve","password":"stored"}"#)
        stage.transfers.challenge()
        stage.transfers.challenge()
        let asked = client.hear()
        let heard = client.answer(asked.last ?? [:], answer)
        #expect(heard.last?.kind == "invalidAnswer")
        #expect(heard.last?["error"]?["message"]?.string?.contains("pw") == false)
        #expect(stage.transfers.requests.count == 2)
    }

    @Test func cancellingTheFetchWithdrawsTheQuestionAndAnswersOnce() {
        let client = stage.connect(.request)
        _ = client.fetch(id: 7)
        stage.transfers.challenge()
        let asked = client.hear()
        let heard = client.say(#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":7}}"#)
        #expect(heard.map(\.method) == ["$/cancelRequest", "auth/cancelled", nil])
        #expect(heard[2]["error"]?["code"]?.integer == -32800)
        #expect(client.answer(asked[0], bobsAnswer).isEmpty)
        #expect(stage.transfers.requests.count == 1)
    }

    @Test func aClientThatDisconnectsEndsOnlyItsOwnFetch() async {
        let leaving = stage.connect(.request)
        let staying = stage.connect(.request)
        _ = leaving.fetch("http://h/1")
        stage.transfers.challenge()
        _ = staying.fetch("http://other/2")
        stage.transfers.challenge()
        #expect(leaving.hear().count == 1)
        let asked = staying.hear()
        leaving.leave()
        #expect(stage.transfers.requests.count == 2)
        #expect(leaving.hear().isEmpty)
        _ = staying.answer(asked[0], bobsAnswer)
        stage.transfers.respond(200)
        #expect(staying.hear().replies.map(\.status) == [200])
    }

    @Test("Rule 21: a client that has shut down its side cannot answer and gets the response")
    func aClientThatHasShutDownItsSideCannotAnswerAndGetsTheResponse() {
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        _ = client.hear()
        stage.broker.inputEnded(client.id)
        #expect(client.hear().last?.status == 401)
        #expect(stage.transfers.requests.count == 1)
        #expect(client.link.isClosed)
    }

    @Test("Rule 8: auth/respond accepts exactly one answer to a challenge sent as a notification")
    func notificationsAreAnsweredByRespond() throws {
        let client = stage.connect(.notification)
        _ = client.fetch()
        stage.transfers.challenge()
        let asked = client.hear()
        #expect(asked.map(\.method) == ["auth/pending"])
        #expect(asked[0]["id"] == nil)
        let challengeID = try #require(asked[0]["params"]?["challengeId"]?.string)
        let respond = { (id: String, answer: String) in
            client.say(
                #"{"jsonrpc":"2.0","id":2,"method":"auth/respond","params":{"challengeId":"\#(id)","answer":\#(answer)}}"#
            )
        }
        let pending = client.say(#"{"jsonrpc":"2.0","id":3,"method":"auth/listPending"}"#)
        #expect(pending[0]["result"]?["challenges"]?.elements?.count == 1)
        #expect(respond("unknown", bobsAnswer)[0]["result"]?["reason"]?.string == "gone")
        #expect(respond(challengeID, #"{"action":"maybe"}"#)[0]["result"]?["reason"]?.string == "invalid")
        #expect(respond(challengeID, bobsAnswer)[0]["result"]?["accepted"]?.boolean == true)
        #expect(respond(challengeID, bobsAnswer)[0]["result"]?["reason"]?.string == "answered")
        stage.transfers.respond(200)
        #expect(client.hear().replies.map(\.status) == [200])
    }

    @Test func anAnswerToAFetchThatHasEndedIsRejectedAsGone() throws {
        let client = stage.connect(.notification)
        _ = client.fetch(id: 5)
        stage.transfers.challenge()
        let challengeID = try #require(client.hear()[0]["params"]?["challengeId"]?.string)
        _ = client.say(#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":5}}"#)
        let late = client.say(
            #"{"jsonrpc":"2.0","id":2,"method":"auth/respond","params":{"challengeId":"\#(challengeID)","answer":{"action":"cancel"}}}"#
        )
        #expect(late[0]["result"]?["reason"]?.string == "gone")
    }
}
