import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// Consent prompts of agents, and the restrictions of sandboxed programs.
@Suite struct BrokerConsentTests {
    private static let maps = Subject(.flatpak, "org.gnome.Maps", isSandboxed: true)
    private let stage = Stage { $0.sharing = .ask }

    private func agent(pid: Int32 = 1, on stage: Stage? = nil) -> StageClient {
        let client = (stage ?? self.stage).connect(nil, pid: pid)
        _ = client.call("agent/register", #"{"name":"desk","asksConfirm":true,"methods":["clientCertificate"]}"#)
        return client
    }

    private func storeForBob(_ client: StageClient) {
        let reply = client.call(
            "credential/store",
            #"{"protectionSpace":{"protocol":"http","host":"h","realm":"r","authenticationMethod":"httpBasic"},"#
                + #""credential":{"type":"password","user":"bob","password":"pw","persistence":"forSession"}}"#)
        #expect(reply?["result"]?["id"] != nil)
    }

    /// Starts a fetch that needs consent, and returns the consent prompt.
    private func askedFetch(_ desk: StageClient, _ client: StageClient) throws -> JSON {
        _ = client.fetch()
        client.stage.transfers.challenge()
        return try #require(desk.hear().of("auth/confirm").first)
    }

    @Test("Rules G5 and G10: the consent prompt names the program, its strength, space and user, and is recorded")
    func theConsentPromptNamesProgramStrengthSpaceAndUser() throws {
        let desk = agent()
        let client = stage.connect(nil)
        storeForBob(desk)
        let asked = try askedFetch(desk, client)
        let params = try #require(asked["params"])
        #expect(params["subject"]?["id"]?.string == "exe:/usr/bin/tool")
        #expect(params["subject"]?["strength"]?.string == "weak")
        #expect(params["allows"]?.elements?.compactMap(\.string) == ["once", "session", "always"])
        #expect(params["user"]?.string == "bob" && params["source"]?.string == "session")
        #expect(params["protectionSpace"]?["realm"]?.string == "r")
        #expect(params["requester"]?["pid"]?.integer == 4711)
        _ = desk.answer(asked, #"{"allow":"session"}"#)
        stage.transfers.respond(200)
        #expect(client.hear().replies.map(\.status) == [200])
        let grants = desk.call("grant/list")?["result"]?["grants"]?.elements ?? []
        #expect(grants.map { $0["allow"]?.string } == ["session"])
        #expect(stage.audit.kinds.filter { $0 == .consentAsked || $0 == .consentAnswered }.count == 2)
        #expect(desk.call("grant/revoke", #"{"id":"g1"}"#)?["result"]?["removed"]?.integer == 1)
    }

    @Test(arguments: [
        #"{"allow":"no"}"#, #"{"allow":"yes"}"#, #"{"allow":"once","for":"ever"}"#, "{}", "[]", #"{"answer":true}"#,
    ])
    func aRefusedOrInvalidConsentReleasesNothing(answer: String) throws {
        let desk = agent()
        let client = stage.connect(nil)
        storeForBob(desk)
        let asked = try askedFetch(desk, client)
        _ = desk.answer(asked, answer)
        #expect(client.hear().replies.map(\.status) == [401])
        #expect(stage.transfers.requests.allSatisfy { $0.authorization == nil })
    }

    @Test("Rule G9: no process consents to its own use of a credential")
    func noClientConsentsToItsOwnUse() throws {
        let desk = agent(pid: 4711)
        let client = stage.connect(nil)
        storeForBob(desk)
        _ = client.fetch()
        stage.transfers.challenge()
        #expect(desk.hear().of("auth/confirm").isEmpty)
        let other = agent(pid: 2)
        stage.clock.advance(by: Limits.consentCooldown)
        let asked = try askedFetch(other, stage.connect(nil))
        _ = other.answer(asked, #"{"allow":"once"}"#)
        #expect(stage.transfers.requests.last?.authorization != nil)
    }

    @Test func theConsentPromptOfAnAgentThatDisconnectsGoesToTheNext() throws {
        let first = agent()
        let second = agent(pid: 2)
        let client = stage.connect(nil)
        storeForBob(first)
        _ = try askedFetch(first, client)
        first.leave()
        let asked = try #require(second.hear().of("auth/confirm").first)
        second.leave()
        #expect(client.hear().replies.map(\.status) == [401])
        _ = asked
    }

    @Test func aFetchThatEndsWithdrawsItsConsentPrompt() throws {
        let desk = agent()
        let client = stage.connect(nil)
        storeForBob(desk)
        let asked = try askedFetch(desk, client)
        _ = client.say(#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}"#)
        #expect(desk.hear().of("$/cancelRequest").map { $0["params"]?["id"]?.integer } == [asked["id"]?.integer])
        #expect(stage.broker.hasConfirmations == false)
        #expect(desk.answer(asked, #"{"allow":"always"}"#).isEmpty)
        #expect(desk.call("grant/list")?["result"]?["grants"]?.elements == [])
    }

    @Test("Rule 9: the question for consent has a deadline")
    func aQuestionHasADeadline() async throws {
        let desk = agent()
        let client = stage.connect(nil)
        storeForBob(desk)
        let asked = try askedFetch(desk, client)
        await stage.settle { stage.clock.sleeperCount > 0 }
        stage.clock.advance(by: Limits.challengeDeadline)
        await stage.settle { !stage.broker.hasConfirmations }
        #expect(client.hear().replies.map(\.status) == [401])
        #expect(desk.hear().of("$/cancelRequest").map { $0["params"]?["id"]?.integer } == [asked["id"]?.integer])
    }

    @Test("Rules I1 and G7: a program that has become another one has no grants")
    func aProgramThatHasBecomeAnotherOneHasNoGrants() throws {
        let desk = agent()
        storeForBob(desk)
        let client = stage.connect(nil)
        let asked = try askedFetch(desk, client)
        _ = desk.answer(asked, #"{"allow":"session"}"#)
        stage.transfers.respond(200)
        let changed = stage.connect(
            nil, currentSubject: Subject(.exe, "/usr/bin/other", file: Subject.File(inode: 3, changed: 1)))
        let again = try askedFetch(desk, changed)
        #expect(again["params"]?["subject"]?["id"]?.string == "unknown")
    }

    @Test("Rule I1: a fetch that was sent before the program was identified uses none of its grants")
    func aFetchFromBeforeTheIdentificationHasNoGrants() throws {
        let desk = agent()
        storeForBob(desk)
        let asked = try askedFetch(desk, stage.connect(nil))
        _ = desk.answer(asked, #"{"allow":"session"}"#)
        stage.transfers.respond(200)
        let early = stage.connect(nil, earlyBytes: 1)
        let again = try askedFetch(desk, early)
        #expect(again["params"]?["subject"]?["id"]?.string == "unknown")
    }

    @Test("Rules I7 and G7: a process that no longer runs its script has no grants of the script")
    func aProcessThatNoLongerRunsItsScriptHasNoneOfItsGrants() throws {
        let file = Subject.File(inode: 4, changed: 1)
        func python(_ path: ExactText?) -> Subject {
            let script = path.map { Subject.Script(path: $0, file: file, isSystemFile: true) }
            return Subject(
                .exe, "/usr/bin/python3", file: file, isSystemFile: true, isInterpreter: true, script: script)
        }
        let desk = agent()
        storeForBob(desk)
        let report = python("/usr/bin/report")
        let first = try askedFetch(desk, stage.connect(nil, subject: report))
        #expect(first["params"]?["subject"]?["script"]?["path"] == "/usr/bin/report")
        _ = desk.answer(first, #"{"allow":"session"}"#)
        stage.transfers.respond(200)
        for now in [python("/usr/bin/other"), python(nil)] {
            let asked = try askedFetch(desk, stage.connect(nil, subject: report, currentSubject: now))
            #expect(asked["params"]?["allows"]?.elements?.count == 1)
            #expect(asked["params"]?["subject"]?["id"] == "exe:/usr/bin/python3")
            _ = desk.answer(asked, #"{"allow":"once"}"#)
            stage.transfers.respond(200)
        }
    }

    // MARK: Sandboxes

    @Test(arguments: [
        "server/status", "agent/register", "credential/list", "session/clear", "broker/lock", "events/subscribe",
        "grant/list", "grant/revoke", "keyring/unlock", "prompt/ask",
    ])
    func sandboxedProgramsAreDeniedManagementMethods(method: String) {
        let client = stage.connect(nil, subject: Self.maps)
        #expect(client.call(method, #"{"name":"x"}"#)?.kind == "denied")
        #expect(client.call("ping")?["result"] != nil)
    }

    @Test func aSandboxedProgramNamesNoFilesOfTheUser() {
        for subject in [Self.maps, Stage.tool] {
            let client = stage.connect(nil, subject: subject)
            _ = client.fetch(
                "https://h/",
                more:
                    #","tls":{"certificate":{"type":"certificate","certificate":"/home/bob/me.pem"}},"auth":{"interaction":"none"}"#
            )
            // The server asks for a certificate, and refuses the one that is presented then.
            for cause in [TransferFailure.Cause.clientCertificateRequired, .clientCertificateRefused] {
                var failure = TransferFailure(.tlsFailed, "a certificate is required", cause: cause)
                failure.clientCertificateRequest = ClientCertificateRequest(distinguishedNames: [])
                stage.transfers.complete(.failure(failure))
            }
            let kind = client.hear().last?.kind
            #expect(kind != nil && (kind == "denied") == subject.isSandboxed, "\(kind ?? "")")
        }
    }

    @Test func aSandboxedProgramReceivesNothingAboutOthers() {
        let plain = Stage()
        let sandbox = plain.connect(.request, subject: Self.maps)
        let client = plain.connect(.notification)
        _ = client.fetch()
        plain.transfers.challenge()
        #expect(client.hear().of("auth/pending").count == 1)
        #expect(sandbox.call("auth/listPending")?["result"]?["challenges"]?.elements == [])
        storeForBob(plain.connect(nil))
        #expect(sandbox.hear().of("credential/changed").isEmpty)
        #expect(client.call("auth/listPending")?["result"]?["challenges"]?.elements?.count == 1)
    }

    /// The reply comes only after the change is written, because otherwise the next broker could still have the grant.
    @Test func aRevocationIsAnsweredOnceItIsWritten() {
        let consents = FakeConsents()
        let client = Stage(consents: consents).connect(.request)
        #expect(client.call("grant/revoke", #"{"id":"g1"}"#) == nil)
        consents.write()
        #expect(client.hear().replies.last?["result"]?["removed"]?.integer == 1)
        #expect(client.call("grant/revoke", #"{"id":"g2"}"#) == nil)
        consents.write(failure: "no space")
        #expect(client.hear().replies.last?["error"]?["data"]?["kind"]?.string == "internalError")
        #expect(client.call("grant/revoke")?["result"]?["removed"]?.integer == 0, "nothing has to be written")
    }
}
