import Broker
import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

/// The keyring, credentials stored by clients, and expiry, as clients observe them.
@Suite struct BrokerKeyringTests {
    private let stage = Stage(hasKeyring: true)
    private let space = #"{"protocol":"http","host":"h","port":80,"realm":"r","authenticationMethod":"httpBasic"}"#
    private let permanent = bobsAnswer.replacing(#""pw""#, with: #""pw","persistence":"permanent""#)

    private func store(_ client: StageClient, _ user: ExactText, _ persistence: String = "permanent") -> [JSON] {
        client.say(
            #"{"jsonrpc":"2.0","id":"s","method":"credential/store","params":{"protectionSpace":\#(space),"credential":{"type":"password","user":"\#(user)","password":"pw","persistence":"\#(persistence)"}}}"#
        )
    }

    @Test func keyringChangesOfOtherProgramsAreNotifiedAndNotAudited() throws {
        let client = stage.connect(.request)
        let sandbox = stage.connect(.request, subject: Subject(.flatpak, "org.gnome.Maps", isSandboxed: true))
        _ = client.call("events/subscribe")
        _ = store(client, "bob")
        let item = try #require(stage.keyring.items.first)
        _ = client.hear()
        for (change, name) in [(KeyringChange.stored(item), "stored"), (.removed, "forgotten")] {
            stage.keyring.change(change)
            let heard = client.hear()
            #expect(heard.map(\.method) == ["credential/changed"])
            #expect(heard.first?["params"]?["change"]?.string == name)
            #expect(heard.first?["params"]?["source"]?.string == "keyring")
        }
        #expect(sandbox.hear().isEmpty)
    }

    @Test func anAcceptedPermanentCredentialIsInTheKeyringAndUsedLater() {
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        let asked = client.hear()
        #expect(asked[0]["params"]?["persistenceAllowed"] == ["none", "forSession", "permanent"])
        _ = client.answer(asked[0], permanent)
        #expect(stage.keyring.items.isEmpty)
        stage.transfers.respond(200)
        let changes = client.hear().of("credential/changed").map { $0["params"]?["source"]?.string }
        #expect(changes == ["session", "keyring"])
        #expect(stage.keyring.items.map { $0.attributes["user"] } == ["bob"])
        _ = client.call("session/clear")
        _ = client.fetch(id: 2)
        stage.transfers.challenge()
        #expect(client.hear().isEmpty)
        stage.transfers.respond(200)
        #expect(client.hear().replies.last?["result"]?["auth"]?["source"]?.string == "keyring")
    }

    @Test("Rule 18: storing the same again raises no change")
    func storingTheSameAgainRaisesNoChange() {
        let client = stage.connect(.request)
        for persistence in ["permanent", "forSession"] {
            #expect(store(client, "bob", persistence).of("credential/changed").count == 1)
            #expect(store(client, "bob", persistence).of("credential/changed").isEmpty)
        }
        #expect(stage.keyring.items.count == 1)
    }

    @Test func everyInitializedConnectionIsNotifiedOfAChange() {
        let (one, other, silent) = (stage.connect(.request), stage.connect(ChallengeDelivery.none), stage.connect(nil))
        _ = store(one, "bob")
        #expect(other.hear().of("credential/changed").count == 1)
        #expect(silent.hear().isEmpty)
    }

    @Test func credentialsAreListedForgottenAndChosen() {
        let client = stage.connect(.request)
        _ = store(client, "bob")
        _ = store(client, "carol")
        _ = store(client, "dave", "forSession")
        let listed = client.call("credential/list")?["result"]?["credentials"]?.elements ?? []
        #expect(listed.map { $0["user"]?.string } == ["dave", "bob", "carol"])
        #expect(listed.map { $0["isDefault"]?.boolean } == [true, true, false])
        #expect(!String(decoding: JSON.array(listed).serialized(), as: UTF8.self).contains("pw"))
        let carol = listed[2]["id"]?.string ?? ""
        #expect(client.call("credential/setDefault", #"{"id":"\#(carol)"}"#)?["result"] == [:])
        let marks = stage.keyring.items.map { $0.attributes["watchword-default"] }
        #expect(marks == [nil, "1"])
        #expect(client.call("credential/forget", #"{"id":"\#(carol)"}"#)?["result"]?["removed"] == 1)
        #expect(client.call("credential/forget", #"{"id":"\#(carol)"}"#)?.kind == "unknownCredential")
        let all = client.call("credential/forget", #"{"protectionSpace":{"protocol":"http","host":"h"}}"#)
        #expect(all?["result"]?["removed"] == 2)
        #expect(stage.keyring.items.isEmpty)
    }

    @Test func withoutAKeyringOnlyTheSessionIsUsed() {
        let stage = Stage()
        let client = stage.connect(.request)
        #expect(client.call("keyring/status")?["result"]?["kind"]?.string == "disabled")
        _ = client.fetch()
        stage.transfers.challenge()
        let asked = client.hear()
        #expect(asked[0]["params"]?["persistenceAllowed"] == ["none", "forSession"])
        _ = client.answer(asked[0], permanent)
        stage.transfers.respond(200)
        #expect(client.hear().replies.map(\.status) == [200])
        _ = client.fetch(id: 2)
        #expect(stage.transfers.requests.last?.authorization != nil)
        #expect(client.call("keyring/unlock")?.kind == "keyringUnavailable")
    }

    @Test(
        "Rule X5: a login is not stored just after a person has closed the window of the keyring, unless the person stores it by hand"
    )
    func aClosedWindowOfTheKeyringIsNotOpenedToStoreALogin() {
        let client = stage.connect(.request)
        stage.keyring.lock()
        stage.keyring.isDismissed = true
        var windows: [Int] = []
        for number in 1...4 {
            let credential =
                #"{"type":"password","user":"u\#(number)","password":"pw","persistence":"permanent"}"#
            _ = client.fetch("https://h/", id: number, more: #","credential":\#(credential)"#)
            stage.transfers.challenge()
            _ = client.hear()
            stage.transfers.respond(200)
            #expect(client.hear().replies.last?.status == 200)
            windows.append(stage.keyring.windows)
            if number == 2 { stage.clock.advance(by: .seconds(10)) }
        }
        #expect(windows == [1, 1, 2, 2])
        #expect(store(client, "bob").replies.last?.kind == "keyringUnavailable" && stage.keyring.windows == 3)
        stage.keyring.isDismissed = false
        #expect(store(client, "bob").replies.last?["result"] != nil && stage.keyring.items.count == 1)
    }

    @Test func loginsThatAreStoredAtTheSameTimeShareOneWindow() {
        stage.keyring.lock()
        stage.keyring.isDismissed = true
        stage.keyring.hold()
        let clients = (2...9).map { stage.connect(.request, pid: $0) }
        for (number, client) in clients.enumerated() {
            _ = client.fetch(
                "https://h\(number)/",
                more: #","credential":{"type":"password","user":"u","password":"pw","persistence":"permanent"}"#)
            stage.transfers.challenge()
            _ = client.hear()
            stage.transfers.respond(200)
            #expect(client.hear().replies.last?.status == 200)
        }
        stage.keyring.release()
        for client in clients { _ = client.hear() }
        #expect(stage.keyring.windows == 1)
    }

    @Test func aFailingKeyringIsSkippedAndReported() {
        for kind in KeyringFailure.Kind.allCases where kind != .cancelled {
            let stage = Stage(hasKeyring: true)
            stage.keyring.failure = KeyringFailure(kind, "the reason")
            let client = stage.connect(.request)
            _ = client.fetch()
            stage.transfers.challenge()
            #expect(client.hear().of("auth/challenge").count == 1)
            let keyring = client.call("server/status")?["result"]?["keyring"]
            #expect(keyring?["kind"]?.string == kind.rawValue)
            #expect(keyring?["reason"]?.string == "the reason")
            _ = client.call("credential/list")
        }
    }

    @Test func aSilentKeyringDelaysOnlyTheWaitingFetchesAndOnce() {
        stage.keyring.stall()
        let clients = (0..<3).map { _ in stage.connect(.request) }
        for (number, client) in clients.enumerated() {
            _ = client.fetch("http://h\(number)/")
            stage.transfers.challenge()
            #expect(client.hear().isEmpty)
        }
        #expect(stage.keyring.waitingCount == 3)
        let open = stage.connect(.request)
        _ = open.fetch("http://open/")
        stage.transfers.respond(200)
        #expect(open.hear().map(\.status) == [200])
        stage.keyring.end(.failure(KeyringFailure(.timedOut, "silent")))
        for client in clients { #expect(client.hear().of("auth/challenge").count == 1) }
        // A later answer of the keyring is ignored.
        stage.keyring.end(.success([]))
        for client in clients { #expect(client.hear().isEmpty) }
        _ = open.fetch("http://later/", id: 2)
        stage.transfers.challenge()
        #expect(open.hear().of("auth/challenge").count == 1)
        #expect(stage.keyring.searches == 3)
    }

    @Test func aFetchThatIsCancelledDuringTheLookUpEnds() {
        stage.keyring.stall()
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        let said = client.say(#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}"#)
        #expect(said.last?["error"]?["code"]?.integer == -32800)
        stage.keyring.end(.success([]))
        #expect(client.hear().isEmpty)
    }

    // MARK: Expiry

    private func logIn(_ client: StageClient) {
        _ = client.fetch()
        stage.transfers.challenge()
        _ = client.answer(client.hear()[0], bobsAnswer)
        stage.transfers.respond(200)
        _ = client.hear()
    }

    private func entries(_ client: StageClient) -> Int? {
        client.call("server/status")?["result"]?["session"]?["entries"]?.integer
    }

    @Test func theSessionExpiresWhenIdle() async {
        let client = stage.connect(.request)
        logIn(client)
        #expect(entries(client) == 1)
        await stage.settle { stage.clock.sleeperCount > 0 }
        stage.clock.advance(by: Limits.sessionIdle)
        await stage.settle { stage.broker.sessionCount == 0 }
        #expect(stage.broker.sessionCount == 0)
    }

    @Test func theSessionEndsWithTheMachinesSleep() {
        let client = stage.connect(.request)
        logIn(client)
        stage.clock.sleepMachine(for: .milliseconds(999))
        _ = client.fetch(id: 2)
        #expect(stage.transfers.requests.last?.authorization != nil)
        stage.clock.sleepMachine(for: .seconds(1))
        _ = client.fetch(id: 3)
        #expect(stage.transfers.requests.last?.authorization == nil)
        #expect(entries(client) == 0)
    }

    @Test func lockForgetsAndNothingIsUsedUntilUnlock() {
        let client = stage.connect(.request)
        logIn(client)
        #expect(client.call("broker/lock")?["result"]?["locked"] == true)
        #expect(entries(client) == 0)
        for (method, params) in [
            ("credential/list", "{}"), ("credential/forget", #"{"id":"session:1"}"#), ("keyring/unlock", "{}"),
            ("credential/setDefault", #"{"id":"session:1"}"#),
        ] {
            #expect(client.call(method, params)?.kind == "locked", "\(method)")
        }
        #expect(store(client, "bob").last?.kind == "locked")
        #expect(client.call("broker/unlock")?["result"]?["locked"] == false)
        #expect(client.call("credential/list")?["result"]?["credentials"]?.elements == [])
    }

    @Test func unlockingRequiresThePassphraseOfTheLock() {
        let (client, other) = (stage.connect(.request), stage.connect(.request))
        #expect(client.call("broker/lock", #"{"passphrase":"right"}"#)?["result"]?["locked"] == true)
        #expect(other.call("broker/lock", #"{"passphrase":"mine"}"#)?.kind == "locked")
        #expect(other.call("broker/lock")?["result"]?["locked"] == true)
        #expect(other.call("broker/unlock")?.kind == "locked")
        #expect(other.call("broker/unlock", #"{"passphrase":"mine"}"#)?.kind == "locked")
        #expect(client.call("broker/unlock", #"{"passphrase":"right"}"#)?.kind == "busy")
        #expect(client.call("server/status")?["result"]?["session"]?["locked"] == true)
        #expect(client.call("ping")?["result"] != nil)
        stage.clock.advance(by: .seconds(1))
        #expect(client.call("broker/unlock", #"{"passphrase":"right"}"#)?["result"]?["locked"] == false)
        #expect(client.call("broker/unlock", #"{"passphrase":""}"#)?.kind == "invalidParams")
        #expect(client.call("credential/list")?["result"] != nil)
    }

    @Test func hostsCanBeAllowedAndDenied() throws {
        let pattern = try HostPattern(".example.com")
        let denied = try HostPattern("evil.example.com")
        let stage = Stage { $0.hosts = HostRules(allowed: [pattern], denied: [denied]) }
        let client = stage.connect(.request)
        #expect(client.fetch("http://h/").map(\.kind) == ["denied"])
        #expect(client.fetch("http://evil.example.com/", id: 2).map(\.kind) == ["denied"])
        #expect(client.fetch("http://a.example.com/", id: 3).isEmpty)
        #expect(stage.transfers.requests.count == 1)
    }

    @Test func settingsCanChange() async {
        let client = stage.connect(.request)
        logIn(client)
        await stage.settle { stage.clock.sleeperCount > 0 }
        let broker = stage.broker
        let done = Task { await broker.reconfigure { $0.session = SessionLimits(idle: .zero) } }
        await stage.settle { stage.broker.sessionCount == 0 }
        await done.value
        #expect(entries(client) == 0)
    }

    @Test func anUnusedProvidedCredentialIsForgottenInTime() async {
        _ = store(stage.connect(nil), "bob", "forSession")
        #expect(stage.broker.hasSessionData)
        await stage.settle { stage.clock.sleeperCount > 0 }
        stage.clock.advance(by: Limits.sessionIdle)
        await stage.settle { !stage.broker.hasSessionData }
        #expect(!stage.broker.hasSessionData)
    }
}
