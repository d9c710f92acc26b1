import Broker
import JSONText
import Testing
import WatchwordProtocol

/// Challenges that agents get because the client of the fetch is not asked or has no answer (SEMANTICS rules 9, 13, 15 and 21).
@Suite struct BrokerAgentTests {
    private let stage = Stage()

    private func agent(_ name: String, priority: Int = 0, more: String = "") -> StageClient {
        let client = stage.connect(nil)
        _ = client.call("agent/register", #"{"name":"\#(name)","priority":\#(priority)\#(more)}"#)
        return client
    }

    private func challenges(_ client: StageClient) -> [JSON] { client.hear().of("auth/challenge") }

    @Test("Rule 15: the agent is asked for a fetch without a subscription")
    func theAgentIsAskedForAFetchWithoutASubscription() {
        let desk = agent("desk")
        let client = stage.connect(nil)
        #expect(client.fetch().isEmpty)
        stage.transfers.challenge("Staff")
        let asked = challenges(desk)
        #expect(asked.count == 1)
        #expect(asked[0]["params"]?["requester"]?["pid"]?.integer == 4711)
        _ = desk.answer(asked[0], bobsAnswer)
        stage.transfers.respond(200)
        let reply = client.hear().replies
        #expect(reply.map(\.status) == [200])
        #expect(reply[0]["result"]?["auth"]?["source"]?.string == "agent")
    }

    @Test("Rule 13: the answer default of the client passes the challenge to the agent")
    func aDefaultOfTheClientGoesToTheAgent() {
        let desk = agent("desk")
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        #expect(challenges(desk).isEmpty)
        _ = client.answer(challenges(client)[0], #"{"action":"default"}"#)
        #expect(challenges(desk).count == 1)
    }

    @Test("Rule 15: agents are asked by priority, and those of one priority in their order")
    func theHighestPriorityIsAskedFirstAndTheOthersInTheirOrder() {
        let low = agent("low", priority: -1)
        let first = agent("first")
        let second = agent("second")
        let high = agent("high", priority: 5)
        let client = stage.connect(nil)
        _ = client.fetch()
        stage.transfers.challenge()
        var names: [String?] = []
        for agent in [high, first, second, low] {
            let asked = challenges(agent)
            #expect(asked.count == 1)
            names.append(asked.first?["params"]?["challengeId"]?.string)
            if let one = asked.first { _ = agent.answer(one, #"{"action":"default"}"#) }
        }
        #expect(Set(names).count == 1)
        #expect(client.hear().map(\.status) == [401])
    }

    @Test("Rule 9: the challenge of an agent that disconnects goes to the next one")
    func theChallengeOfAnAgentThatDisconnectsGoesToTheNext() {
        let (dying, heir) = (agent("dying", priority: 1), agent("heir"))
        let client = stage.connect(nil)
        _ = client.fetch()
        stage.transfers.challenge()
        #expect(challenges(dying).count == 1)
        dying.leave()
        let asked = challenges(heir)
        #expect(asked.count == 1)
        heir.leave()
        #expect(client.hear().map(\.status) == [401])
        #expect(stage.transfers.requests.count == 1)
    }

    @Test func theChallengeOfAnAgentThatUnregistersGoesToTheNext() {
        let (leaving, heir) = (agent("leaving", priority: 1), agent("heir"))
        _ = stage.connect(nil).fetch()
        stage.transfers.challenge()
        #expect(challenges(leaving).count == 1)
        #expect(leaving.call("agent/unregister")?["result"] == [:])
        #expect(challenges(heir).count == 1)
        #expect(leaving.call("agent/unregister")?["error"]?["code"]?.integer == -32600)
    }

    @Test("Rule 9: a challenge past its deadline goes to the next respondent")
    func aChallengePastItsDeadlineGoesToTheNextRespondent() async {
        let (slow, heir) = (agent("slow", priority: 1), agent("heir"))
        let client = stage.connect(nil)
        _ = client.fetch()
        stage.transfers.challenge()
        let asked = challenges(slow)
        await stage.settle { stage.clock.sleeperCount > 0 }
        stage.clock.advance(by: Limits.challengeDeadline)
        await stage.settle { stage.clock.sleeperCount > 0 }
        #expect(slow.hear().of("$/cancelRequest").count == 1)
        let heirs = challenges(heir)
        #expect(heirs.count == 1)
        // The answer of the first agent comes too late, and is ignored.
        #expect(slow.answer(asked[0], bobsAnswer).isEmpty)
        #expect(stage.transfers.requests.count == 1)
        _ = heir.answer(heirs[0], bobsAnswer)
        #expect(stage.transfers.requests.count == 2)
        #expect(slow.hear().of("auth/resolved").count == 1)
    }

    @Test func resolvedClosesTheOtherWindows() {
        let (first, second) = (agent("first", priority: 1), agent("second"))
        _ = stage.connect(nil).fetch()
        stage.transfers.challenge()
        _ = first.answer(challenges(first)[0], #"{"action":"default"}"#)
        let asked = challenges(second)
        _ = second.answer(asked[0], #"{"action":"continue"}"#)
        let resolved = first.hear().of("auth/resolved")
        #expect(resolved.count == 1)
        #expect(resolved[0]["params"]?["challengeId"] == asked[0]["params"]?["challengeId"])
        #expect(resolved[0]["params"]?["action"]?.string == "continue")
        #expect(second.hear().of("auth/resolved").isEmpty)
    }

    @Test func aCancelledFetchClosesAllWindows() {
        let (first, second) = (agent("first", priority: 1), agent("second"))
        let client = stage.connect(nil)
        _ = client.fetch()
        stage.transfers.challenge()
        _ = first.answer(challenges(first)[0], #"{"action":"default"}"#)
        #expect(challenges(second).count == 1)
        client.leave()
        #expect(first.hear().of("auth/cancelled").count == 1)
        #expect(second.hear().of("auth/cancelled").count == 1)
    }

    @Test func anAgentIsAskedForItsMethodsOnly() {
        let digest = agent("digest", priority: 1, more: #","methods":["httpDigest"]"#)
        let any = agent("any")
        _ = stage.connect(nil).fetch()
        stage.transfers.challenge()
        #expect(challenges(digest).isEmpty)
        #expect(challenges(any).count == 1)
    }

    @Test func interactionNoneAsksNoQuestion() {
        let desk = agent("desk")
        let client = stage.connect(.request)
        _ = client.fetch(more: #","auth":{"interaction":"none"}"#)
        stage.transfers.challenge()
        #expect(client.hear().map(\.status) == [401])
        #expect(challenges(desk).isEmpty)
    }

    @Test func theNumberOfAgentsIsLimited() {
        for _ in 0..<Limits.agents { _ = agent("one") }
        #expect(stage.connect(nil).call("agent/register", #"{"name":"more"}"#)?.kind == "busy")
        #expect(agent("twice").call("agent/register", #"{"name":"a"}"#) != nil)
    }

    @Test func statusShowsTheAgents() {
        let desk = agent("desk", priority: 3, more: #","locale":"de_DE""#)
        let agents = desk.call("server/status")?["result"]?["agents"]?.elements
        #expect(agents?.count == 1)
        #expect(agents?[0]["name"]?.string == "desk")
        #expect(agents?[0]["locale"]?.string == "de_DE")
    }

    @Test func anAgentThatUnregistersIsStillAClient() {
        let both = agent("both")
        _ = both.call("auth/subscribe", #"{"asksCanAuthenticate":true}"#)
        _ = both.fetch()
        stage.transfers.challenge()
        let can = both.hear().of("auth/canAuthenticate")
        #expect(can.count == 1)
        _ = both.call("agent/unregister")
        #expect(both.answer(can[0], #"{"answer":true}"#).of("auth/challenge").count == 1)
    }

    @Test func aClientThatDisconnectsDuringItsConsultationRaisesNoPrompt() {
        let desk = agent("desk")
        let client = stage.connect(nil)
        _ = client.call("auth/subscribe", #"{"asksUseStorage":true}"#)
        _ = client.fetch()
        stage.transfers.challenge()
        #expect(client.hear().of("auth/useStorage").count == 1)
        client.leave()
        #expect(desk.hear().isEmpty)
    }

    @Test("Rule 9: each agent has its own deadline")
    func eachAgentHasItsOwnDeadline() async {
        let (slow, heir) = (agent("slow", priority: 1), agent("heir"))
        _ = stage.connect(nil).fetch()
        stage.transfers.challenge()
        let asked = challenges(slow)
        await stage.settle { stage.clock.sleeperCount > 0 }
        stage.clock.advance(by: Limits.challengeDeadline)
        // The answer is read at the moment of the deadline.
        _ = slow.answer(asked[0], #"{"action":"default"}"#)
        await stage.settle { stage.clock.sleeperCount > 0 }
        for _ in 0..<20 { await stage.settle() }
        #expect(stage.broker.hasQuestions)
        #expect(heir.hear().map(\.method) == ["auth/challenge"])
    }
}
