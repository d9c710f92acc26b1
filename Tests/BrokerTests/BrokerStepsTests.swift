import Foundation
import JSONText
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Broker

/// `fetch/start`, `fetch/read` and `fetch/attach`.
@Suite struct BrokerStepsTests {
    private let stage = Stage()

    private func start(_ client: StageClient, _ more: String = "") throws -> (fetchID: String, token: String) {
        let reply = client.call("fetch/start", #"{"url":"http://h/"\#(more)}"#)?["result"]
        return (try #require(reply?["fetchId"]?.string), try #require(reply?["attachToken"]?.string))
    }

    private func attach(_ client: StageClient, _ token: String, side: String = "response") -> JSON? {
        client.call("fetch/attach", #"{"token":"\#(token)","side":"\#(side)"}"#)
    }

    @Test func headersAreNotifiedBeforeCompletion() throws {
        let client = stage.connect()
        let (fetchID, _) = try start(client)
        #expect(stage.transfers.requests[0].options.delivery == .fromHeader)
        stage.transfers.respond(200, [HeaderField("X", "y")], body: "body")
        let header = client.hear()
        #expect(header.map(\.method) == ["fetch/headers"])
        #expect(header[0]["params"]?["fetchId"]?.string == fetchID)
        #expect(header[0]["params"]?["requestId"]?.string == "call")
        #expect(header[0]["params"]?["bodyBytes"]?.integer == 4)
        let heard = client.say(#"{"jsonrpc":"2.0","id":2,"method":"fetch/read","params":{"fetchId":"\#(fetchID)"}}"#)
        #expect(heard.count == 2)
        let completed = heard.first { $0.method == "fetch/completed" }?["params"]
        #expect(completed?["status"]?.integer == 200)
        #expect(completed?["bodyBytes"]?.integer == 4)
        #expect(completed?["body"] == nil)
        #expect(heard.first { $0["id"]?.integer == 2 }?["result"]?["data"]?["value"]?.string == "body")
    }

    @Test func aReadMayComeBeforeTheResponse() throws {
        let client = stage.connect()
        let (fetchID, _) = try start(client)
        let read = #"{"jsonrpc":"2.0","id":2,"method":"fetch/read","params":{"fetchId":"\#(fetchID)"}}"#
        #expect(client.say(read).isEmpty)
        #expect(client.call("fetch/read", #"{"fetchId":"\#(fetchID)"}"#)?.kind == "busy")
        stage.transfers.respond(200, body: "body")
        let heard = client.hear()
        #expect(heard.map(\.method) == ["fetch/headers", nil, "fetch/completed"])
        #expect(heard[1]["result"]?["eof"]?.boolean == true)
    }

    @Test func aBodyReadToItsEndIsCompletedBeforeTheNextRead() throws {
        stage.transfers.saysEndsLater = true
        let client = stage.connect()
        let (fetchID, _) = try start(client)
        stage.transfers.respond(200, body: "body")
        let read = #"{"jsonrpc":"2.0","id":2,"method":"fetch/read","params":{"fetchId":"\#(fetchID)"}}"#
        #expect(client.say(read).map(\.method) == ["fetch/headers", nil, "fetch/completed"])
        #expect(client.say(read).map(\.kind) == ["unknownFetch"])
        stage.transfers.endBody(stage.transfers.openBodies[0], .success(4))
        #expect(client.hear().isEmpty, "the end is notified once")
    }

    @Test func aFailureIsNotifiedOnceAndEndsPendingReads() throws {
        let client = stage.connect()
        let (fetchID, token) = try start(client)
        _ = client.say(#"{"jsonrpc":"2.0","id":2,"method":"fetch/read","params":{"fetchId":"\#(fetchID)"}}"#)
        stage.transfers.complete(.failure(TransferFailure(.cannotConnect, "no way")))
        let heard = client.hear()
        #expect(heard.map(\.method) == [nil, "fetch/completed"])
        #expect(heard[0].kind == "cannotConnect")
        #expect(heard[1]["params"]?["error"]?["data"]?["kind"]?.string == "cannotConnect")
        #expect(attach(stage.connect(), token)?.kind == "unknownFetch")
    }

    @Test func anAbortedBodyIsAnError() throws {
        let client = stage.connect()
        let (fetchID, _) = try start(client)
        stage.transfers.respond(200, body: "body")
        _ = client.hear()
        stage.transfers.endBody(stage.transfers.openBodies[0], .failure(TransferFailure(.connectionLost, "gone")))
        let heard = client.hear()
        #expect(heard.map(\.method) == ["fetch/completed"])
        #expect(heard[0]["params"]?["fetchId"]?.string == fetchID)
        #expect(heard[0]["params"]?["error"]?["data"]?["kind"]?.string == "connectionLost")
    }

    @Test func anAttachTokenIsValidForOneConnection() throws {
        let client = stage.connect()
        let (_, token) = try start(client)
        let second = stage.connect()
        #expect(attach(second, token)?["result"] == [:])
        #expect(attach(stage.connect(), token)?.kind == "unknownFetch")
        #expect(attach(stage.connect(), "made up")?.kind == "unknownFetch")
    }

    @Test(arguments: [true, false]) func theSocketIsPassedToTheBody(isAttachedFirst: Bool) throws {
        let client = stage.connect()
        let (_, token) = try start(client)
        if !isAttachedFirst { stage.transfers.respond(200, body: "body") }
        let second = stage.connect()
        _ = attach(second, token)
        #expect(second.link.giveSocket(open("/dev/null", O_RDWR)))
        stage.loop.turn()
        if isAttachedFirst { stage.transfers.respond(200, body: "body") }
        stage.loop.turn()
        #expect(stage.transfers.attached == stage.transfers.openBodies)
    }

    @Test func aSocketForAFetchThatFailsIsClosed() throws {
        let client = stage.connect()
        let (_, token) = try start(client)
        let second = stage.connect()
        _ = attach(second, token)
        // Not by the number of the descriptor, which another test may get.
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
        defer { close(ends[1]) }
        #expect(second.link.giveSocket(ends[0]))
        stage.loop.turn()
        var byte: UInt8 = 0
        #expect(recv(ends[1], &byte, 1, Int32(MSG_DONTWAIT)) == -1 && errno == EAGAIN)
        stage.transfers.complete(.failure(TransferFailure(.cannotConnect, "no way")))
        stage.loop.turn()
        var end = pollfd(fd: ends[1], events: Int16(POLLIN), revents: 0)
        #expect(poll(&end, 1, 5000) == 1 && recv(ends[1], &byte, 1, 0) == 0)
    }

    @Test func aBusyConnectionIsNotPassed() throws {
        let client = stage.connect()
        let (_, token) = try start(client)
        #expect(attach(client, token)?.kind == "invalidRequest")
        for early in ["\nraw", "\nraw\n"] {
            let heard = stage.connect().say(
                #"{"jsonrpc":"2.0","id":1,"method":"fetch/attach","params":{"token":"\#(token)","side":"response"}}"#
                    + early)
            #expect(heard.first?.kind == "invalidRequest")
        }
        // Neither attempt has used up the token.
        #expect(attach(stage.connect(), token)?["result"] == [:])
    }

    @Test func aClientThatDisconnectsCancelsItsBodies() throws {
        let client = stage.connect()
        let (_, token) = try start(client)
        stage.transfers.respond(200, body: "body")
        stage.loop.turn()
        #expect(stage.transfers.openBodies.count == 1)
        client.leave()
        stage.loop.turn()
        #expect(stage.transfers.openBodies.isEmpty)
        #expect(attach(stage.connect(), token)?.kind == "unknownFetch")
    }

    @Test func unreadBodiesAreLimited() throws {
        let client = stage.connect()
        for _ in 0..<Limits.openBodies { _ = try start(client) }
        #expect(client.call("fetch/start", #"{"url":"http://h/"}"#)?.kind == "busy")
        let other = stage.connect()
        for number in 0..<Limits.openBodies {
            _ = other.fetch(id: number, more: #","maxInlineBodyBytes":0"#)
            stage.transfers.complete(
                .success(TransferResponse(status: 200, body: [1])), ofRequest: Limits.openBodies + number)
            #expect(other.hear().count == 1)
        }
        _ = other.fetch(id: 999, more: #","maxInlineBodyBytes":0"#)
        stage.transfers.complete(.success(TransferResponse(status: 200, body: [1])), ofRequest: 2 * Limits.openBodies)
        #expect(other.hear().map(\.kind) == ["busy"])
    }

    @Test func shutdownNotifiesOfUnfinishedBodies() async throws {
        let client = stage.connect(.request)
        _ = try start(client)
        stage.transfers.respond(200, body: "body")
        #expect(client.hear().map(\.method) == ["fetch/headers"])
        let (broker, clock) = (stage.broker, stage.clock)
        let ending = Task { await broker.shutDown(reason: "test", grace: .seconds(1)) }
        await stage.settle { clock.sleeperCount == 1 }
        #expect(!client.link.isClosed)
        clock.advance(by: .seconds(1))
        await stage.settle { client.link.isClosed }
        await ending.value
        let heard = client.hear()
        try #require(heard.map(\.method) == ["server/closing", "fetch/completed"])
        #expect(heard[1]["params"]?["error"]?["data"]?["kind"]?.string == "cancelled")
        #expect(stage.transfers.openBodies.isEmpty)
    }

    @Test func cancellingAFetchCancelsItsTransfer() throws {
        let client = stage.connect()
        let (fetchID, _) = try start(client)
        _ = client.call("fetch/cancel", #"{"fetchId":"\#(fetchID)"}"#)
        #expect(stage.transfers.cancelledCount == 1)
        #expect(client.hear().isEmpty)
    }

    @Test func cancellingABodyEndsIt() throws {
        let client = stage.connect()
        let (fetchID, _) = try start(client)
        stage.transfers.respond(200, body: "body")
        _ = client.hear()
        let heard = client.say(#"{"jsonrpc":"2.0","id":2,"method":"fetch/cancel","params":{"fetchId":"\#(fetchID)"}}"#)
        #expect(heard.contains { $0["result"]?["cancelled"]?.boolean == true })
        #expect(heard.contains { $0.method == "fetch/completed" && $0["params"]?["error"]?["code"]?.integer == -32800 })
        #expect(stage.transfers.openBodies.isEmpty)
    }
}
