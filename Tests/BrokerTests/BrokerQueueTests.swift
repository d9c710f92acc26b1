import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// Clients and agents that limit the number of open questions (`maxPending`).
@Suite struct BrokerQueueTests {
    private let stage = Stage()

    private func agent(_ more: String = #","maxPending":1"#, priority: Int = 0) -> StageClient {
        let client = stage.connect(nil)
        let params = #"{"name":"desk","priority":\#(priority)\#(more)}"#
        #expect(client.call("agent/register", params)?["result"] != nil)
        return client
    }

    /// Starts and challenges `count` fetches of a client, from different hosts.
    private func ask(_ count: Int, of client: StageClient) {
        for number in 1...count {
            _ = client.fetch("http://host\(number)/", id: number)
            stage.transfers.challenge()
        }
    }

    private func hosts(_ messages: [JSON]) -> [String?] {
        (messages.of("auth/challenge") + messages.of("auth/pending")).map {
            $0["params"]?["protectionSpace"]?["host"]?.string
        }
    }

    /// A login for http://kept that another program has stored, and an agent that shows one question at a time.
    private func stageWithStoredLogin() -> (Stage, desk: StageClient) {
        let stage = Stage { $0.sharing = .ask }
        let desk = stage.connect(nil, pid: 1)
        _ = desk.call("agent/register", #"{"name":"desk","asksConfirm":true,"maxPending":1}"#)
        let store =
            #"{"protectionSpace":{"protocol":"http","host":"kept"},"credential":{"type":"password","user":"bob","password":"pw"}}"#
        _ = stage.connect(.request, subject: Subject(.exe, "/usr/bin/other")).call("credential/store", store)
        return (stage, desk)
    }

    @Test func anAgentReceivesOneQuestionAtATime() {
        let desk = agent()
        ask(3, of: stage.connect(nil))
        var asked = desk.hear()
        for number in 1...3 {
            #expect(hosts(asked) == ["host\(number)"])
            guard let question = asked.of("auth/challenge").first else { return }
            asked = desk.answer(question, #"{"action":"continue"}"#)
        }
        #expect(desk.hear().isEmpty)
        #expect(!stage.broker.hasQuestions)
    }

    @Test func aClientReceivesUpToMaxPendingQuestions() {
        let client = stage.connect(.request)
        _ = client.call("auth/subscribe", #"{"maxPending":2}"#)
        _ = client.fetch("http://host1/", id: 1)
        stage.transfers.challenge()
        let first = client.hear()
        #expect(hosts(first) == ["host1"])
        _ = client.fetch("http://host2/", id: 2)
        stage.transfers.challenge()
        #expect(hosts(client.hear()) == ["host2"])
        _ = client.fetch("http://host3/", id: 3)
        stage.transfers.challenge()
        #expect(hosts(client.hear()) == [])
        _ = client.call("auth/listPending").map { #expect($0["result"]?["challenges"]?.elements?.count == 2) }
        #expect(hosts(client.answer(first.of("auth/challenge")[0], #"{"action":"continue"}"#)) == ["host3"])
    }

    @Test func theTimeForAnAnswerBeginsWithTheDelivery() async {
        let desk = agent()
        let client = stage.connect(nil)
        ask(2, of: client)
        let first = desk.hear().of("auth/challenge")
        await stage.settle { stage.clock.sleeperCount == 2 }
        stage.clock.advance(by: Limits.challengeDeadline - .seconds(1))
        await stage.settle()
        #expect(hosts(desk.answer(first[0], #"{"action":"continue"}"#)) == ["host2"])
        await stage.settle { stage.clock.sleeperCount == 1 }
        stage.clock.advance(by: Limits.challengeDeadline - .seconds(1))
        await stage.settle()
        #expect(stage.broker.hasQuestions)
        stage.clock.advance(by: .seconds(1))
        await stage.settle { !stage.broker.hasQuestions }
        #expect(!stage.broker.hasQuestions)
    }

    @Test func queuedQuestionsTimeOut() async {
        let desk = agent()
        let client = stage.connect(nil)
        ask(2, of: client)
        _ = desk.hear()
        await stage.settle { stage.clock.sleeperCount == 2 }
        stage.clock.advance(by: Limits.leaseWait)
        await stage.settle { !stage.broker.hasQuestions }
        #expect(client.hear().replies.map(\.status) == [401, 401])
        #expect(hosts(desk.hear()) == [])
    }

    @Test func aFetchThatEndsLeavesTheQueue() {
        let desk = agent()
        let client = stage.connect(nil)
        ask(3, of: client)
        #expect(hosts(desk.hear()) == ["host1"])
        for id in [2, 1] { _ = client.say(#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":\#(id)}}"#) }
        #expect(hosts(desk.hear()) == ["host3"])
    }

    @Test func queuedQuestionsOfAnAgentThatDisconnectsGoToTheNextAgent() {
        let (dying, heir) = (agent(priority: 1), agent(""))
        ask(3, of: stage.connect(nil))
        #expect(hosts(dying.hear()) == ["host1"])
        #expect(hosts(heir.hear()) == [])
        dying.leave()
        #expect(Set(hosts(heir.hear())) == ["host1", "host2", "host3"])
    }

    @Test func queuedQuestionsOfAClientThatCannotAnswerAreNotDelivered() {
        let client = stage.connect(.request)
        _ = client.call("auth/subscribe", #"{"maxPending":1}"#)
        ask(3, of: client)
        stage.broker.inputEnded(client.id)
        #expect(client.hear().replies.map(\.status) == [401, 401, 401])
    }

    @Test func consentPromptsCountAgainstMaxPending() {
        let (stage, desk) = stageWithStoredLogin()
        let client = stage.connect(nil, pid: 2)
        _ = client.fetch("http://new/", id: 1)
        stage.transfers.challenge()
        let first = desk.hear()
        #expect(first.map(\.method) == ["auth/challenge"])
        _ = client.fetch("http://kept/", id: 2)
        stage.transfers.challenge()
        #expect(desk.hear().isEmpty)
        #expect(desk.answer(first[0], #"{"action":"continue"}"#).map(\.method) == ["auth/confirm"])
    }

    // MARK: Time in the queue

    /// Queues a fetch of `client` behind the question of another program at an agent.
    private func queue(_ client: StageClient, _ more: String) -> (desk: StageClient, first: JSON?) {
        let desk = agent()
        ask(1, of: stage.connect(nil))
        let first = desk.hear().of("auth/challenge").first
        _ = client.fetch("http://queued/", id: 7, more: #","notify":["waiting"]"# + more)
        stage.transfers.challenge()
        return (desk, first)
    }

    @Test func aQueuedQuestionIsAWaitForAnother() async throws {
        let client = stage.connect(nil)
        let (desk, first) = queue(client, "")
        let told = try #require(client.hear().of("fetch/waiting").first?["params"])
        #expect(told["for"]?.string == "question" && told["sinceMs"]?.integer == 0)
        #expect(told["protectionSpace"]?["host"]?.string == "queued")
        stage.clock.advance(by: .seconds(3))
        let listed = client.call("fetch/list")?["result"]?["fetches"]?.elements?.first
        #expect(listed?["state"]?.string == "waiting" && listed?["sinceMs"]?.integer == 3000)
        #expect(hosts(desk.answer(try #require(first), #"{"action":"continue"}"#)) == ["queued"])
        let asked = client.call("fetch/list")?["result"]?["fetches"]?.elements?.first
        #expect(asked?["state"]?.string == "challenged" && asked?["for"] == nil)
    }

    @Test func theTimeoutOfAFetchBoundsItsTimeInTheQueue() async {
        let client = stage.connect(nil)
        let (desk, _) = queue(client, #","timeoutMs":5000"#)
        await stage.settle { stage.clock.sleeperCount == 2 }
        stage.clock.advance(by: .seconds(4))
        await stage.settle()
        #expect(client.hear().replies.isEmpty)
        stage.clock.advance(by: .seconds(1))
        var replies: [JSON] = []
        await stage.settle {
            replies += client.hear().replies
            return !replies.isEmpty
        }
        #expect(replies.map(\.kind) == ["timedOut"])
        #expect(desk.hear().isEmpty)
    }

    @Test func theTimeoutIncludesTheQueueAndExcludesThePrompt() async throws {
        let client = stage.connect(nil)
        let (desk, first) = queue(client, #","timeoutMs":5000"#)
        stage.clock.advance(by: .seconds(3))
        let asked = desk.answer(try #require(first), #"{"action":"continue"}"#).of("auth/challenge")
        stage.clock.advance(by: .seconds(100))
        _ = desk.answer(try #require(asked.first), bobsAnswer)
        let left = stage.transfers.requests.last?.timeout
        #expect(left == .seconds(2))
    }

    @Test func theTimeoutBoundsAQueuedConsentPrompt() async {
        let (stage, desk) = stageWithStoredLogin()
        let client = stage.connect(nil, pid: 2)
        _ = client.fetch("http://new/", id: 1)
        stage.transfers.challenge()
        _ = client.fetch("http://kept/", id: 2, more: #","timeoutMs":5000,"notify":["waiting"]"#)
        stage.transfers.challenge()
        #expect(client.hear().of("fetch/waiting").count == 1)
        await stage.settle { stage.clock.sleeperCount == 3 }
        stage.clock.advance(by: .seconds(5))
        await stage.settle { !stage.broker.hasConfirmations }
        #expect(client.hear().replies.map(\.kind) == ["timedOut"])
        #expect(!stage.broker.hasConfirmations)
        withExtendedLifetime(desk) {}
    }

    // MARK: Answers given while a question waits

    @Test func aProgramWhoseQuestionWasCancelledIsNotAskedAboutTheNext() throws {
        let desk = agent()
        let client = stage.connect(nil)
        for number in 1...2 {
            _ = client.fetch("http://h/", id: number, more: #","auth":{"useStorage":false}"#)
            stage.transfers.challenge("realm\(number)")
        }
        let first = try #require(desk.hear().of("auth/challenge").first)
        #expect(desk.answer(first, #"{"action":"cancel"}"#).of("auth/challenge").isEmpty)
        #expect(client.hear().replies.map(\.kind) == ["challengeCancelled", "busy"])
        #expect(!stage.broker.hasQuestions)
    }

    @Test func aProgramThatWasRefusedConsentIsNotAskedAboutTheNext() throws {
        let stage = Stage { $0.sharing = .ask }
        let desk = stage.connect(nil, pid: 1)
        _ = desk.call(
            "agent/register", #"{"name":"desk","asksConfirm":true,"maxPending":1,"methods":["clientCertificate"]}"#)
        let other = stage.connect(.request, subject: Subject(.exe, "/usr/bin/other"))
        for realm in ["realm1", "realm2"] {
            let store =
                #"{"protectionSpace":{"protocol":"http","host":"kept","realm":"\#(realm)"},"credential":{"type":"password","user":"bob","password":"pw"}}"#
            #expect(other.call("credential/store", store)?["result"] != nil)
        }
        let client = stage.connect(nil, pid: 2)
        for number in 1...2 {
            _ = client.fetch("http://kept/\(number)/", id: number)
            stage.transfers.challenge("realm\(number)")
        }
        let first = try #require(desk.hear().of("auth/confirm").first)
        #expect(desk.answer(first, #"{"allow":"no"}"#).of("auth/confirm").isEmpty)
        #expect(client.hear().replies.map(\.status) == [401, 401])
        #expect(!stage.broker.hasConfirmations)
    }

    @Test(arguments: ["0", "-1", "1025", "\"one\""]) func maxPendingIsBounded(text: String) {
        let client = stage.connect(nil)
        #expect(client.call("agent/register", #"{"name":"a","maxPending":\#(text)}"#)?.kind == "invalidParams")
        #expect(client.call("auth/subscribe", #"{"maxPending":\#(text)}"#)?.kind == "invalidParams")
    }
}
