import Broker
import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

/// What is forgotten while the keyring is being written to or read.
@Suite struct BrokerForgettingTests {
    private let stage = Stage(hasKeyring: true)
    private let permanent = bobsAnswer.replacing(#""pw""#, with: #""pw","persistence":"permanent""#)

    @Test(arguments: [
        ("credential/forget", #"{"protectionSpace":{"protocol":"http","host":"h"}}"#), ("session/clear", "{}"),
        ("broker/lock", "{}"),
    ])
    func aWriteThatWasUnderWayIsGivenUp(method: String, params: String) {
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        _ = client.answer(client.hear()[0], permanent)
        stage.keyring.stall()
        stage.transfers.respond(200)
        _ = client.hear()
        #expect(stage.keyring.waitingCount == 1)
        _ = client.call(method, params)
        stage.keyring.end(.success([]))
        _ = client.hear()
        #expect(stage.keyring.items.isEmpty)
    }

    @Test func whatIsForgottenElsewhereChangesNothing() {
        let client = stage.connect(.request)
        _ = client.fetch()
        stage.transfers.challenge()
        _ = client.answer(client.hear()[0], permanent)
        stage.keyring.stall()
        stage.transfers.respond(200)
        _ = client.hear()
        _ = client.call("credential/forget", #"{"protectionSpace":{"protocol":"http","host":"elsewhere"}}"#)
        stage.keyring.end(.success([]))
        _ = client.hear()
        #expect(stage.keyring.items.count == 1)
    }
}
