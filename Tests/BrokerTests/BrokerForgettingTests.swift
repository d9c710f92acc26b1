import Broker
import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

/// Credentials that are forgotten while the keyring is being written to or read.
@Suite struct BrokerForgettingTests {
    private let stage = Stage(hasKeyring: true)
    private let permanent = bobsAnswer.replacing(#""pw""#, with: #""pw","persistence":"permanent""#)

    /// Returns a client whose accepted login is being written to the keyring.
    private func clientWhoseWriteIsUnderWay() -> StageClient {
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        _ = client.answer(client.hear()[0], permanent)
        stage.keyring.stall()
        stage.transfers.respond(200)
        _ = client.hear()
        return client
    }

    @Test(arguments: [
        ("credential/forget", #"{"protectionSpace":{"protocol":"http","host":"h"}}"#), ("session/clear", "{}"),
        ("broker/lock", "{}"),
    ])
    func aWriteInProgressDoesNotRestoreAForgottenCredential(method: String, params: String) {
        let client = clientWhoseWriteIsUnderWay()
        #expect(stage.keyring.waitingCount == 1)
        _ = client.call(method, params)
        stage.keyring.end(.success([]))
        _ = client.hear()
        #expect(stage.keyring.items.isEmpty)
    }

    @Test(
        "Rule P15: an unknown member of a method that deletes or changes something is refused",
        arguments: [
            ("session/clear", #"{"orgin":"http://elsewhere"}"#),
            ("session/clear", #"{"until":"2026-01-01T00:00:00Z"}"#),
            ("session/clear", #"{"origin":"http://h","realm":null}"#),
            ("credential/forget", #"{"protectionSpace":{"protocol":"http","host":"h","relm":"other"}}"#),
            ("credential/forget", #"{"protectionSpace":{"protocol":"http","host":"h"},"user":"alice"}"#),
            ("credential/forget", #"{"id":"session:1","protectionSpace":{"protocol":"http","host":"elsewhere"}}"#),
            ("credential/forget", #"{"id":"session:1","user":"alice"}"#),
            ("credential/setDefault", #"{"id":"session:1","path":"/"}"#),
            (
                "credential/store",
                #"{"protectionSpace":{"protocol":"http","host":"h","path":"/"},"credential":{"type":"password","user":"bob","password":"new"}}"#
            ),
            (
                "credential/store",
                #"{"protectionSpace":{"protocol":"http","host":"h"},"credential":{"type":"password","user":"bob","password":"new"},"expiresAt":"2026-01-01T00:00:00Z"}"#
            ),
            ("grant/revoke", #"{"program":"exe:/usr/bin/elsewhere"}"#),
            ("prompt/resume", #"{"all":true,"program":"x"}"#),
            ("broker/lock", #"{"pasphrase":"pw"}"#), ("broker/unlock", #"{"password":"pw"}"#),
            ("keyring/unlock", #"{"collection":"login"}"#),
        ])
    func anUnknownMemberIsRefusedAndChangesNothing(method: String, params: String) {
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        _ = client.answer(client.hear()[0], bobsAnswer)
        stage.transfers.respond(200)
        _ = client.hear()
        let before = client.call("credential/list")?["result"]
        #expect(before?["credentials"]?.elements?.count == 1)
        let reply = client.call(method, params)
        #expect(reply?.kind == "invalidParams")
        #expect(client.call("credential/list")?["result"] == before)
        #expect(client.call("server/status")?["result"]?["locked"]?.boolean != true)
    }

    @Test func theSpaceOfAChallengeSelectsTheForgottenCredentials() {
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        let asked = client.hear()[0]
        _ = client.answer(asked, bobsAnswer)
        stage.transfers.respond(200)
        _ = client.hear()
        let space = String(decoding: asked["params"]?["protectionSpace"]?.serialized() ?? [], as: UTF8.self)
        let reply = client.call("credential/forget", #"{"protectionSpace":\#(space)}"#)
        #expect(reply?["result"]?["removed"]?.integer == 1)
    }

    @Test func forgettingAnotherHostChangesNothing() {
        let client = clientWhoseWriteIsUnderWay()
        _ = client.call("credential/forget", #"{"protectionSpace":{"protocol":"http","host":"elsewhere"}}"#)
        stage.keyring.end(.success([]))
        _ = client.hear()
        #expect(stage.keyring.items.count == 1)
    }
}
