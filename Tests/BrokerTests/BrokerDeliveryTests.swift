import Broker
import JSONText
import Testing
import WatchwordProtocol

/// The delivery `result`, subscriptions, and the requests `canAuthenticate` and `useStorage`.
@Suite struct BrokerDeliveryTests {
    private let stage = Stage()

    private func resume(_ token: String?, _ answer: String = bobsAnswer, id: Int = 2) -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"method":"fetch/run","params":{"resume":"\#(token ?? "")","answer":\#(answer)}}"#
    }

    private func park(_ client: StageClient) -> JSON? {
        _ = client.fetch()
        stage.transfers.challenge("Staff")
        return client.hear().first?["result"]
    }

    @Test func aParkedFetchIsResumed() {
        let client = stage.connect(.result)
        let half = park(client)
        #expect(half?["state"]?.string == "authRequired")
        #expect(half?["challenge"]?["protectionSpace"]?["realm"]?.string == "Staff")
        let token = half?["resume"]?.string
        #expect(token?.utf8.count == 32)
        #expect(client.say(resume(token)).isEmpty)
        stage.transfers.challenge("Staff")
        let again = client.hear().first?["result"]
        #expect(again?["challenge"]?["previousFailureCount"]?.integer == 1)
        _ = client.say(resume(again?["resume"]?.string, bobsAnswer.replacing("pw", with: "right"), id: 3))
        stage.transfers.respond(200)
        #expect(client.hear().replies.map(\.status) == [200])
    }

    @Test func aParkedFetchMayBeResumedOnAnotherConnection() {
        let first = stage.connect(.result)
        let token = park(first)?["resume"]?.string
        first.leave()
        let second = stage.connect(nil)
        #expect(second.say(resume(token)).isEmpty)
        stage.transfers.respond(200)
        #expect(second.hear().map(\.status) == [200])
    }

    @Test func aResumeTokenIsValidOnce() {
        let client = stage.connect(.result)
        let token = park(client)?["resume"]?.string
        #expect(client.say(resume(token, #"{"action":"continue"}"#)).map(\.status) == [401])
        #expect(client.say(resume(token)).map(\.kind) == ["unknownResume"])
        #expect(client.say(resume("0")).map(\.kind) == ["unknownResume"])
    }

    @Test func anInvalidAnswerLeavesTheFetchParked() {
        let client = stage.connect(.result)
        let token = park(client)?["resume"]?.string
        #expect(client.say(resume(token, #"{"action":"maybe"}"#)).map(\.kind) == ["invalidParams"])
        #expect(client.say(resume(token, #"{"action":"cancel"}"#)).replies.map(\.kind) == ["challengeCancelled"])
    }

    @Test func aResumeTokenIsValidUntilTheDeadline() async {
        let client = stage.connect(.result)
        let token = park(client)?["resume"]?.string
        await stage.settle { stage.clock.sleeperCount > 0 }
        stage.clock.advance(by: Limits.challengeDeadline)
        await stage.settle { !stage.broker.hasQuestions }
        #expect(client.say(resume(token)).map(\.kind) == ["unknownResume"])
        #expect(client.call("server/status")?["result"]?["fetches"]?["running"]?.integer == 0)
    }

    @Test func listPendingShowsParkedChallengesWithoutTheToken() {
        let token = park(stage.connect(.result))?["resume"]?.string ?? "?"
        let listed = stage.connect(nil).call("auth/listPending")
        #expect(listed?["result"]?["challenges"]?.elements?.count == 1)
        #expect(String(decoding: listed?.serialized() ?? [], as: UTF8.self).contains(token) == false)
    }

    @Test func parkedFetchesAreLimited() {
        func kinds(of client: StageClient, _ numbers: Range<Int>) -> [String?] {
            numbers.flatMap { number in
                _ = client.fetch("http://h\(number)/", id: number)
                stage.transfers.challenge()
                return client.hear().map(\.kind)
            }
        }
        let own = Limits.parkedFetchesOfProgram
        #expect(kinds(of: stage.connect(.result), 0..<own).allSatisfy { $0 == nil })
        #expect(kinds(of: stage.connect(.result), own..<(own + 1)) == ["busy"], "the limit of one program")
        let others = stage.connect(.result, pid: 4712)
        #expect(kinds(of: others, own..<Limits.parkedFetches).allSatisfy { $0 == nil })
        #expect(kinds(of: stage.connect(.result, pid: 4713), 1000..<1001) == ["busy"], "the limit of all programs")
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

    @Test func aFetchThatIsCancelledWithdrawsItsQuestion() {
        let client = consulting()
        _ = client.hear()
        let said = client.say(#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}"#)
        #expect(said.map(\.method) == ["$/cancelRequest", nil])
        #expect(said.last?["error"]?["code"]?.integer == -32800)
    }

    @Test func aClientThatHasShutDownItsSideIsNotConsulted() {
        let client = stage.connect(nil)
        _ = client.call("auth/subscribe", #"{"delivery":"result","asksCanAuthenticate":true}"#)
        _ = client.fetch()
        stage.broker.inputEnded(client.id)
        stage.transfers.challenge()
        #expect(client.hear().map(\.status) == [401])
        #expect(client.link.isClosed)
    }
}
