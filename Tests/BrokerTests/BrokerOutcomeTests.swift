import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// `auth/resolved` with an outcome, for the respondent that answered.
@Suite struct BrokerOutcomeTests {
    private let stage = Stage()

    private func agent() -> StageClient {
        let client = stage.connect(nil)
        _ = client.call("agent/register", #"{"name":"desk"}"#)
        return client
    }

    private func outcomes(_ messages: [JSON]) -> [String?] {
        messages.of("auth/resolved").map { $0["params"]?["outcome"]?.string }
    }

    @Test func anAgentIsNotifiedOfTheRefusalAndTheAcceptanceOfItsLogin() {
        let (desk, other) = (agent(), agent())
        let client = stage.connect(nil)
        _ = client.fetch()
        stage.transfers.challenge()
        let first = desk.hear().of("auth/challenge")[0]
        #expect(outcomes(desk.answer(first, bobsAnswer)) == [])
        stage.transfers.challenge()
        let heard = desk.hear()
        #expect(outcomes(heard) == ["refused"])
        #expect(heard.of("auth/resolved")[0]["params"]?["challengeId"] == first["params"]?["challengeId"])
        _ = desk.answer(heard.of("auth/challenge")[0], bobsAnswer.replacing("pw", with: "pw2"))
        stage.transfers.respond(200)
        let last = desk.hear().of("auth/resolved")
        #expect(outcomes(last) == ["accepted"])
        #expect(last[0]["params"]?["user"]?.string == "bob")
        #expect(last[0]["params"]?["by"]?.string == "agent")
        // The other agents only close their windows.
        #expect(outcomes(other.hear()) == [nil, nil])
    }

    @Test(arguments: [ChallengeDelivery.request, .notification])
    func aClientReceivesTheOutcomeBeforeItsResult(_ delivery: ChallengeDelivery) {
        let client = stage.connect(delivery)
        _ = client.fetch()
        stage.transfers.challenge()
        if delivery == .request {
            _ = client.answer(client.hear().of("auth/challenge")[0], bobsAnswer)
        } else {
            let asked = client.hear().of("auth/pending")[0]["params"]?["challengeId"]?.string ?? ""
            let reply = client.call("auth/respond", #"{"challengeId":"\#(asked)","answer":\#(bobsAnswer)}"#)
            #expect(reply?["result"]?["accepted"]?.boolean == true)
        }
        stage.transfers.respond(200)
        let heard = client.hear()
        #expect(heard.map(\.method).filter { $0 != "credential/changed" }.suffix(2) == ["auth/resolved", nil])
        #expect(outcomes(heard) == ["accepted"])
        let resolved = heard.of("auth/resolved").first?["params"]
        #expect(resolved?["by"]?.string == "client" && resolved?["user"]?.string == "bob")
    }

    @Test func aFetchThatEndsFirstAbandonsTheAnswer() {
        let desk = agent()
        let client = stage.connect(nil)
        _ = client.fetch()
        stage.transfers.challenge()
        _ = desk.answer(desk.hear().of("auth/challenge")[0], bobsAnswer)
        client.leave()
        #expect(outcomes(desk.hear()) == ["abandoned"])
    }

    @Test func anAnswerThatCannotBeUsedIsSuperseded() {
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        let heard = client.answer(client.hear().of("auth/challenge")[0], bobsAnswer.replacing("bob", with: "bo:b"))
        #expect(heard.map(\.method) == ["auth/resolved", "auth/challenge"])
        #expect(outcomes(heard) == ["superseded"])
    }

    @Test func theOtherAgentsAreNotifiedThatNoAnswerCame() {
        let (first, second) = (agent(), agent())
        _ = stage.connect(nil).fetch()
        stage.transfers.challenge()
        _ = first.answer(first.hear().of("auth/challenge")[0], #"{"action":"default"}"#)
        second.leave()
        let heard = first.hear().of("auth/resolved")
        #expect(outcomes(heard) == ["abandoned"])
        #expect(heard.first?["params"]?["action"]?.string == "none")
    }

    @Test func otherAnswersHaveNoOutcome() {
        for action in ["continue", "cancel", "reject", "default"] {
            let client = stage.connect(.request)
            _ = client.fetch()
            stage.transfers.challenge()
            let heard = client.answer(client.hear().of("auth/challenge")[0], #"{"action":"\#(action)"}"#)
            #expect(heard.of("auth/resolved").isEmpty)
        }
    }
}
