import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

@Suite struct BrokerAuditTests {
    private func answered(_ stage: Stage, _ client: StageClient, id: Int = 1, more: String = "") throws {
        _ = client.fetch("http://h/a/secret?token=x", id: id, more: more)
        stage.transfers.challenge("Staff")
        let question = try #require(client.hear().of("auth/challenge").first)
        _ = client.answer(question, bobsAnswer)
        stage.transfers.respond(200)
        _ = client.hear()
    }

    @Test func aFetchWithALoginIsAudited() throws {
        let stage = Stage()
        try answered(stage, stage.connect(.request))
        let events = stage.audit.events
        #expect(
            events.map(\.kind) == [.challengeAsked, .challengeAnswered, .credentialUsed, .credentialStored])
        #expect(events.allSatisfy { $0.fetchID == "f1" && $0.client?.name == "tester" && $0.client?.pid == 4711 })
        #expect(events.allSatisfy { $0.client?.uid == 1000 && $0.timeMs == 1_000_000_000_000 })
        #expect(events[0].by == "client" && events[1].by == "client" && events[1].action == "credential")
        #expect(events[2].user == "bob" && events[2].source == .client && events[2].origin == "http://h")
        #expect(events[3].user == "bob" && events[3].source == .session && events[3].space?.realm == "Staff")
        for event in events {
            let text = String(decoding: event.json.serialized(), as: UTF8.self)
            #expect(!text.contains("secret") && !text.contains("token") && !text.contains("pw"))
        }
    }

    @Test func anAgentThatAnswersForOthersIsNamed() throws {
        let stage = Stage()
        let agent = stage.connect()
        _ = agent.call("agent/register", #"{"name":"desk"}"#)
        let client = stage.connect()
        _ = client.fetch()
        stage.transfers.challenge("Staff")
        _ = agent.answer(try #require(agent.hear().of("auth/challenge").first), bobsAnswer)
        let events = stage.audit.events
        #expect(events.map(\.kind) == [.challengeAsked, .challengeAnswered, .credentialUsed])
        #expect(events.map(\.agent?.name) == ["desk", "desk", nil])
        #expect(events.map(\.by) == ["agent", "agent", nil] && events[2].source == .agent)
        #expect(events.allSatisfy { $0.client?.name == nil && $0.client?.pid == 4711 })
    }

    @Test func managementActionsAreRecorded() throws {
        let stage = Stage()
        let client = stage.connect(.request)
        let id = try #require(
            client.call(
                "credential/store",
                #"{"protectionSpace":{"protocol":"http","host":"h"},"credential":{"type":"password","user":"bob","password":"pw"}}"#
            )?["result"]?["id"]?.string)
        _ = client.call("credential/forget", #"{"id":"\#(id)"}"#)
        _ = client.call("session/clear", #"{"origin":"http://h/path"}"#)
        _ = client.call("broker/lock")
        #expect(client.call("credential/list")?.kind == "locked")
        _ = client.call("broker/unlock")
        let events = stage.audit.events
        #expect(
            events.map(\.kind) == [
                .credentialStored, .credentialForgotten, .sessionCleared, .locked, .denied, .unlocked,
            ])
        #expect(events.allSatisfy { $0.client?.name == "tester" && $0.fetchID == nil })
        #expect(events[2].origin == "http://h" && events[2].count == 0 && events[4].reason == "locked")
    }

    @Test func theBrokersOwnActionsHaveNoClient() {
        let stage = Stage()
        stage.broker.assumeIsolated { $0.forgetSession(because: "SIGUSR1") }
        #expect(stage.audit.kinds == [.sessionCleared])
        #expect(stage.audit.events.first?.client == nil && stage.audit.events.first?.reason == "SIGUSR1")
    }

    @Test func aHostThatIsNotAllowedIsDenied() throws {
        let stage = Stage { $0.hosts = HostRules(denied: [try! HostPattern("h")]) }
        let client = stage.connect(.request)
        #expect(client.fetch("http://h/secret").last?.kind == "denied")
        let event = try #require(stage.audit.events.first)
        #expect(event.kind == .denied && event.origin == "http://h" && event.reason == "denied")
    }

    // MARK: events/subscribe

    @Test func aSubscriberReceivesEventsOfOtherClients() throws {
        let stage = Stage()
        let watcher = stage.connect()
        #expect(watcher.call("events/subscribe")?["result"] == [:])
        try answered(stage, stage.connect(.request))
        let heard = watcher.hear().of("event").compactMap { $0["params"] }
        #expect(heard.map { $0["kind"]?.string } == stage.audit.kinds.map(\.rawValue))
        #expect(heard == stage.audit.events.map(\.json))
    }

    @Test func aSubscriptionMayNameKinds() throws {
        let stage = Stage()
        let watcher = stage.connect()
        _ = watcher.call("events/subscribe", #"{"kinds":["locked"]}"#)
        _ = stage.connect().call("broker/lock")
        _ = stage.connect().call("broker/unlock")
        #expect(watcher.hear().of("event").map { $0["params"]?["kind"]?.string } == ["locked"])
        _ = watcher.call("events/subscribe", #"{"kinds":[]}"#)
        _ = stage.connect().call("broker/lock")
        #expect(watcher.hear().isEmpty)
        #expect(watcher.call("events/subscribe", #"{"kinds":["odd"]}"#)?.kind == "invalidParams")
        _ = watcher.call("events/subscribe")
        watcher.leave()
        #expect(stage.broker.assumeIsolated { $0.desks.audit.listeners.isEmpty })
    }

    @Test func aClientWithoutASubscriptionReceivesNoEvents() throws {
        let stage = Stage()
        let bystander = stage.connect()
        try answered(stage, stage.connect(.request))
        #expect(bystander.hear().isEmpty)
    }
}
