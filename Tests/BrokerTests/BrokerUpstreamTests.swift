import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// The results of PAC files: how long they are used, and when the file is fetched again.
@Suite struct BrokerUpstreamTests {
    private let upstreams = FakeUpstreams()
    private let stage: Stage

    init() {
        stage = Stage(upstreams: upstreams) { $0.upstreamSource = .pac("http://wpad/p") }
    }

    private var last: TransferRequest? { stage.transfers.requests.last }

    @Test func aResultIsUsedForAMinuteWithoutAnotherEvaluation() {
        let client = stage.connect()
        for id in 1...3 { _ = client.fetch("http://h/\(id)", id: id) }
        #expect(stage.transfers.requests.map(\.url.text) == ["http://wpad/p"])
        #expect(last?.proxy == nil && last?.authorization == nil)
        stage.transfers.respond(200, body: "PROXY a:1")
        stage.loop.turn()
        #expect(upstreams.evaluated == ["http://h/"] && stage.transfers.requests.count == 4)
        #expect(stage.transfers.requests.dropFirst().allSatisfy { $0.proxy?.host == "a" })
        stage.clock.advance(by: .seconds(59))
        _ = client.fetch("http://h/4", id: 4)
        #expect(upstreams.evaluated.count == 1 && stage.transfers.requests.count == 5)
        stage.clock.advance(by: .seconds(1))
        _ = client.fetch("http://h/5", id: 5)
        #expect(upstreams.evaluated.count == 2 && stage.transfers.requests.count == 6)
    }

    @Test func theFileIsFetchedAgainAndThePreviousOneIsUsedIfThatFails() {
        let client = stage.connect()
        func served(_ id: Int) -> String? {
            _ = client.fetch("http://h\(id)/", id: id)
            return last?.proxy?.host
        }
        _ = client.fetch("http://h/")
        stage.transfers.respond(200, body: "PROXY a:1")
        stage.loop.turn()
        #expect(served(2) == "a")
        stage.clock.advance(by: .seconds(900))
        #expect(served(3) == nil && last?.url.text == "http://wpad/p")
        stage.transfers.complete(.failure(TransferFailure(.cannotConnect, "down")), ofRequest: 3)
        stage.loop.turn()
        #expect(last?.url.text == "http://h3/" && last?.proxy?.host == "a")
        #expect(served(4) == "a")
        stage.clock.advance(by: .seconds(5))
        #expect(served(5) == nil && last?.url.text == "http://wpad/p")
    }

    @Test func anAnswerThatIsNoScriptIsLikeAFailedFetch() {
        let client = stage.connect()
        _ = client.fetch("http://h/")
        stage.transfers.respond(200, body: "<html>")
        stage.loop.turn()
        #expect(client.hear().last?.kind == "proxyFailed")
        stage.clock.advance(by: .seconds(5))
        _ = client.fetch("http://h2/", id: 2)
        stage.transfers.respond(200, body: "PROXY a:1")
        stage.loop.turn()
        #expect(last?.proxy?.host == "a")
        // Nor does it replace a script.
        stage.clock.advance(by: .seconds(900))
        _ = client.fetch("http://h3/", id: 3)
        stage.transfers.complete(
            .success(TransferResponse(status: 200, body: Array("<html>".utf8))),
            ofRequest: stage.transfers.requests.count - 1)
        stage.loop.turn()
        #expect(last?.url.text == "http://h3/" && last?.proxy?.host == "a")
    }

    @Test func tooManyEvaluationsFailOneFetchOnly() {
        let client = stage.connect()
        _ = client.fetch("http://h/")
        stage.transfers.respond(200, body: "BUSY")
        stage.loop.turn()
        #expect(client.hear().last?.kind == "proxyFailed" && upstreams.evaluated.count == 1)
        _ = client.fetch("http://h/", id: 2)
        stage.loop.turn()
        #expect(upstreams.evaluated.count == 2, "the failure is not kept")
    }

    @Test func theTokenInTheURLIsNotShown() {
        let url = "http://wpad/p?token=secret"
        stage.broker.assumeIsolated { $0.reconfigure { $0.upstreamSource = .pac(url) } }
        let client = stage.connect()
        _ = client.fetch("http://h/")
        #expect(last?.url.text == url)
        stage.transfers.respond(404)
        stage.loop.turn()
        let status = client.call("server/status")?["result"]?["upstreams"]
        #expect(status?["pac"]?.string == "http://wpad/p")
        #expect(status?["problem"]?.string?.contains("http://wpad/p:") == true)
    }

    @Test func aReloadReplacesAFileThatIsBeingFetched() {
        let client = stage.connect()
        _ = client.fetch("http://h/")
        stage.broker.assumeIsolated { $0.reconfigure { $0.upstreamSource = .pac("http://wpad/q") } }
        stage.loop.turn()
        #expect(last?.url.text == "http://wpad/q")
        stage.transfers.complete(.success(TransferResponse(status: 200, body: Array("PROXY old:1".utf8))), ofRequest: 0)
        stage.transfers.complete(.success(TransferResponse(status: 200, body: Array("PROXY new:1".utf8))), ofRequest: 1)
        stage.loop.turn()
        #expect(last?.url.text == "http://h/" && last?.proxy?.host == "new")
    }

    @Test func aReloadWithoutAFileLetsTheFetchesContinue() {
        let client = stage.connect()
        _ = client.fetch("http://h/")
        stage.broker.assumeIsolated { $0.reconfigure { $0.upstreamSource = nil } }
        stage.loop.turn()
        #expect(last?.url.text == "http://h/" && last?.proxy == nil)
    }

    @Test func aFailureIsReportedAndEndsWithTheNextResult() {
        let client = stage.connect()
        _ = client.fetch("http://h/")
        stage.transfers.respond(404)
        #expect(client.hear().last?.kind == "proxyFailed")
        func problem() -> String? { client.call("server/status")?["result"]?["upstreams"]?["problem"]?.string }
        #expect(problem() == "cannot fetch the PAC file http://wpad/p: the server answered with status 404")
        stage.clock.advance(by: .seconds(5))
        _ = client.fetch("http://h/", id: 2)
        stage.transfers.respond(200, body: "DIRECT")
        stage.loop.turn()
        #expect(problem() == nil && last?.url.text == "http://h/" && last?.proxy == nil)
    }
}
