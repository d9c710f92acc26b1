import JSONText
import Testing
import WatchwordProtocol

@testable import Broker

/// The limits of one client, and their durations.
@Suite struct BrokerBoundsTests {
    let stage = Stage()

    private func send(_ text: String, from client: StageClient) {
        Array(text.utf8).withUnsafeBytes { stage.broker.received($0, from: client.id) }
    }

    /// Advances the clock in steps, so that the broker's periodic checks run in time.
    private func wait(_ seconds: Int, _ client: StageClient) async {
        for _ in 0..<(seconds / 5) where !client.link.isClosed {
            await stage.settle(until: { stage.clock.sleeperCount > 0 })
            stage.clock.advance(by: .seconds(5))
            await stage.settle(until: { stage.clock.sleeperCount > 0 || client.link.isClosed })
        }
    }

    @Test(arguments: ["{", "Content-Length: 9\r\n\r\n", "Cont"])
    func aMessageThatIsNotFinishedEndsTheConnection(start: String) async {
        let (client, other) = (stage.connect(), stage.connect())
        send(start, from: client)
        send("{", from: other)
        await wait(20, client)
        #expect(!client.link.isClosed)
        send("\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n", from: other)
        await wait(20, client)
        #expect(client.link.isClosed && !other.link.isClosed)
        #expect(client.hear().contains { $0.kind == "protocolViolation" } || start.hasPrefix("Content"))
        #expect(other.hear().count == 1)
    }

    @Test func aLargeMessageMayTakeItsTime() async {
        let client = stage.connect()
        send("{\"x\":\"" + String(repeating: "x", count: 60 * Limits.messageBytesPerSecond), from: client)
        await wait(80, client)
        #expect(!client.link.isClosed)
        await wait(20, client)
        #expect(client.link.isClosed)
    }

    @Test func aClientThatDoesNotReadReceivesHandles() {
        let client = stage.connect()
        let body = String(repeating: "x", count: 100_000)
        client.link.waitingBytes = Limits.outgoingQueueBytes / 2
        _ = client.fetch(id: 1)
        stage.transfers.respond(200, body: body)
        #expect(client.hear().first?["result"]?["body"]?["type"]?.string == "handle")
        client.link.waitingBytes = 0
        _ = client.fetch(id: 2)
        stage.transfers.respond(200, body: body)
        #expect(client.hear().first?["result"]?["body"]?["type"]?.string == "string")
    }

    @Test func theQuotaForRequestBytesIsEnforcedAndReleased() {
        let client = stage.connect()
        let body = #","method":"POST","body":{"type":"string","value":"\#(String(repeating: "x", count: 10 << 20))"}"#
        for id in 1...3 { #expect(client.fetch(id: id, more: body).isEmpty) }
        #expect(client.fetch(id: 4, more: body).map(\.kind) == ["busy"])
        #expect(stage.connect().fetch(id: 1, more: body).isEmpty, "another client has room")
        stage.transfers.respond(200)
        #expect(client.hear().map(\.status) == [200])
        #expect(client.fetch(id: 5, more: body).isEmpty)
    }

    @Test func theQuotaForOpenChallengesIsEnforcedAndReleased() throws {
        let (client, other) = (stage.connect(.request), stage.connect(.request))
        var asked: [JSON] = []
        for id in 1...Limits.openChallenges {
            _ = client.fetch("http://h\(id)/", id: id)
            stage.transfers.challenge()
            asked += client.hear().of("auth/challenge")
        }
        #expect(asked.count == Limits.openChallenges)
        _ = client.fetch("http://one.more/", id: 1000)
        stage.transfers.challenge()
        #expect(client.hear().map(\.kind) == ["busy"])
        _ = other.fetch("http://others/", id: 1)
        stage.transfers.challenge()
        #expect(other.hear().of("auth/challenge").count == 1)
        #expect(client.answer(try #require(asked.first), #"{"action":"continue"}"#).map(\.status) == [401])
        _ = client.fetch("http://one.more/", id: 1001)
        stage.transfers.challenge()
        #expect(client.hear().of("auth/challenge").count == 1)
    }

    @Test func repliesOfAnIncompleteBatchCountAgainstTheQuota() {
        let client = stage.connect()
        let params = #"{"url":"http://h/","maxInlineBodyBytes":4000000}"#
        let entries = (1...5).map { number in
            #"{"jsonrpc":"2.0","id":\#(number),"method":"fetch/run","params":\#(params)}"#
        }
        _ = client.say("[\(entries.joined(separator: ","))]")
        let body = String(repeating: "x", count: 4_000_000)
        for _ in 1...5 { stage.transfers.respond(200, body: body) }
        stage.loop.turn()
        let types = (client.hear().first?.elements ?? []).map { $0["result"]?["body"]?["type"]?.string }
        #expect(types.filter { $0 == "string" }.count == 3 && types.filter { $0 == "handle" }.count == 2)
    }
}
