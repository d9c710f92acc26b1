import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// Stopping all prompts for one program (`stopAsking`).
@Suite struct BrokerStoppingTests {
    private static let other = Subject(
        .exe, "/usr/bin/other", file: Subject.File(inode: 3, changed: 1), isSystemFile: true)
    private static let stop = #"{"action":"cancel","stopAsking":true}"#
    private let stage = Stage()

    private func agent(_ more: String = "", on stage: Stage? = nil) -> StageClient {
        let client = (stage ?? self.stage).connect(nil, pid: 1)
        _ = client.call("agent/register", #"{"name":"desk"\#(more)}"#)
        return client
    }

    private func ask(_ url: String, pid: Int32 = 4711, subject: Subject = Stage.tool, more: String = "") -> StageClient
    {
        let client = stage.connect(nil, pid: pid, subject: subject)
        _ = client.fetch(url, more: more)
        stage.transfers.challenge()
        return client
    }

    private func result(_ client: StageClient) -> JSON? { client.hear().replies.last?["result"] }

    private func stopped(_ desk: StageClient) -> [String?] {
        (desk.call("prompt/list")?["result"]?["stopped"]?.elements ?? []).map { $0["subject"]?.string }
    }

    @Test func aStoppedProgramRaisesNoQuestions() throws {
        let desk = agent()
        let first = ask("http://a/")
        _ = desk.answer(try #require(desk.hear().of("auth/challenge").first), Self.stop)
        #expect(first.hear().map(\.kind) == ["challengeCancelled"])
        // Another process of the same program, at another site, and at the same site shortly after the cancel.
        for url in ["http://b/", "http://a/"] {
            let result = self.result(ask(url, pid: 99))
            #expect(result?["status"]?.integer == 401)
            #expect(result?["unanswered"] == [["scheme": "Basic", "reason": "noRespondent"]])
            #expect(result?["noRespondent"]?.string == "stopped")
        }
        #expect(desk.hear().isEmpty)
        #expect(stopped(desk) == ["exe:/usr/bin/tool"])
        #expect(desk.call("prompt/list")?["result"]?["stopped"]?.elements?.first?["unasked"]?.integer == 2)
        // Questions of other programs, and to clients that answer themselves, are asked.
        _ = ask("http://b/", subject: Self.other)
        #expect(desk.hear().of("auth/challenge").count == 1)
        let own = stage.connect(.request)
        _ = own.fetch("http://c/")
        stage.transfers.challenge()
        #expect(own.hear().of("auth/challenge").count == 1)
        #expect(stage.audit.kinds.contains(.promptsStopped))
        #expect(stage.audit.events.contains { $0.kind == .challengeUnanswered && $0.reason == "stopped" })
    }

    @Test func promptResumeResumesAStoppedProgram() throws {
        let desk = agent()
        _ = ask("http://a/")
        _ = desk.answer(try #require(desk.hear().of("auth/challenge").first), Self.stop)
        for params in ["{}", #"{"all":false}"#, #"{"all":true,"subject":"x"}"#, #"{"program":"x"}"#] {
            #expect(desk.call("prompt/resume", params)?.kind == "invalidParams")
        }
        let none = desk.call("prompt/resume", #"{"subject":"exe:/usr/bin/other"}"#)
        #expect(none?["result"]?["resumed"]?.integer == 0)
        #expect(stopped(desk).count == 1)
        let one = desk.call("prompt/resume", #"{"subject":"exe:/usr/bin/tool"}"#)
        #expect(one?["result"]?["resumed"]?.integer == 1)
        #expect(stopped(desk).isEmpty && stage.audit.kinds.last == .promptsResumed)
        _ = ask("http://b/")
        #expect(desk.hear().of("auth/challenge").count == 1)
    }

    @Test func neitherTimeNorTheEndOfTheSessionResumesAProgram() throws {
        let desk = agent()
        _ = ask("http://a/")
        _ = desk.answer(try #require(desk.hear().of("auth/challenge").first), Self.stop)
        stage.clock.advance(by: .seconds(86_400))
        for method in ["session/clear", "broker/lock", "broker/unlock"] { _ = desk.call(method) }
        #expect(result(ask("http://b/"))?["noRespondent"]?.string == "stopped")
        #expect(desk.hear().of("auth/challenge").isEmpty)
    }

    @Test func openAndQueuedQuestionsAreWithdrawn() throws {
        let desk = agent(#","maxPending":2"#)
        let clients = (1...3).map { ask("http://h\($0)/") }
        let other = ask("http://h4/", subject: Self.other)
        let asked = desk.hear().of("auth/challenge")
        #expect(asked.count == 2)
        let heard = desk.answer(asked[0], Self.stop)
        #expect(heard.of("$/cancelRequest").count == 1)
        // The remaining question in the queue is the other program's.
        #expect(heard.of("auth/challenge").map { $0["params"]?["protectionSpace"]?["host"]?.string } == ["h4"])
        #expect(clients[0].hear().map(\.kind) == ["challengeCancelled"])
        #expect(clients[1...].map { result($0)?["noRespondent"]?.string } == ["stopped", "stopped"])
        #expect(other.hear().isEmpty)
    }

    @Test func questionsOfFetchesBehindAStoppedProgramAreAsked() throws {
        let desk = agent()
        _ = ask("http://a/")
        _ = desk.answer(try #require(desk.hear().of("auth/challenge").first), Self.stop)
        // A fetch of the stopped program holds the lease while its client decides; no agent is asked for it.
        let deciding = stage.connect(.request, pid: 5)
        _ = deciding.fetch("http://shared/")
        stage.transfers.challenge()
        let question = try #require(deciding.hear().of("auth/challenge").first)
        let waiting = ask("http://shared/", pid: 6, subject: Self.other)
        let heard = deciding.answer(question, #"{"action":"default"}"#)
        #expect(heard.replies.last?["result"]?["noRespondent"]?.string == "stopped")
        #expect(desk.hear().of("auth/challenge").count == 1)
        #expect(waiting.hear().isEmpty)
    }

    @Test func consentPromptsStopToo() throws {
        let stage = Stage { $0.sharing = .ask }
        let desk = agent(#","asksConfirm":true"#, on: stage)
        for host in ["kept", "kept-too"] {
            let store =
                #"{"protectionSpace":{"protocol":"http","host":"\#(host)"},"credential":{"type":"password","user":"bob","password":"pw"}}"#
            _ = stage.connect(.request, subject: Self.other).call("credential/store", store)
        }
        let client = stage.connect(nil, pid: 2)
        _ = client.fetch("http://kept/")
        stage.transfers.challenge()
        let asked = try #require(desk.hear().of("auth/confirm").first)
        #expect(desk.answer(asked, #"{"allow":"no","stopAsking":true}"#).of("auth/challenge").isEmpty)
        let result = client.hear().replies.last?["result"]
        #expect(result?["status"]?.integer == 401 && result?["noRespondent"]?.string == "consentDenied")
        // At another site there is no refusal yet.
        let again = stage.connect(nil, pid: 3)
        _ = again.fetch("http://kept-too/")
        stage.transfers.challenge()
        #expect(again.hear().replies.map(\.status) == [401])
        #expect(desk.hear().isEmpty)
        #expect(stage.transfers.requests.allSatisfy { $0.authorization == nil })
    }

    @Test(arguments: [
        #"{"action":"continue","stopAsking":true}"#, #"{"action":"cancel","stopAsking":"yes"}"#,
        #"{"action":"cancel","stopAskingg":true}"#,
    ])
    func anInvalidAnswerStopsNothing(answer: String) throws {
        let desk = agent()
        let client = ask("http://a/")
        _ = desk.answer(try #require(desk.hear().of("auth/challenge").first), answer)
        #expect(client.hear().map(\.kind) == ["invalidAnswer"])
        #expect(stopped(desk).isEmpty)
    }

    @Test func stopAskingIsInvalidWithAConsent() throws {
        #expect(throws: InvalidParams.self) { try ConfirmReply(["allow": "once", "stopAsking": true]) }
        #expect(try !ConfirmReply(["allow": "no"]).stopsAsking)
        #expect(try ConfirmReply(["allow": "no", "stopAsking": true]).stopsAsking)
    }

    @Test func aClientCannotStopItself() throws {
        let desk = agent()
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        let heard = client.answer(try #require(client.hear().of("auth/challenge").first), Self.stop)
        #expect(heard.replies.map(\.kind) == ["invalidAnswer"])
        let notified = stage.connect(.notification)
        _ = notified.fetch()
        stage.transfers.challenge()
        let id = notified.hear().of("auth/pending").first?["params"]?["challengeId"]?.string ?? ""
        let reply = notified.call("auth/respond", #"{"challengeId":"\#(id)","answer":\#(Self.stop)}"#)
        #expect(reply?["result"]?["reason"]?.string == "invalid")
        #expect(stopped(desk).isEmpty)
    }

    @Test func sandboxedProgramsCannotListOrResumeStoppedPrograms() {
        let sandbox = stage.connect(nil, subject: Subject(.flatpak, "org.gnome.Maps", isSandboxed: true))
        #expect(sandbox.call("prompt/list")?.kind == "denied")
        #expect(sandbox.call("prompt/resume", #"{"all":true}"#)?.kind == "denied")
    }
}
