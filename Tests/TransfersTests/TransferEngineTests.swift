import EventLoop
import Synchronization
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// Connections, cancellation, and the shutdown of the engine.
@Suite(.timed) struct TransferEngineTests {
    private static let keepAlive = ScriptedServer.Reply.bytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    @Test func exchangesShareAConnection() async throws {
        let server = ScriptedServer(Array(repeating: Self.keepAlive, count: 10) + [.hold])
        defer { server.stop() }
        try await withEngine { engine in
            for number in 0..<10 {
                #expect(await engine.exchange(request("\(server.url)/\(number)")).text == "ok")
            }
            let figures = engine.figures
            #expect(figures.connectionsOpened == 1)
            #expect(figures.connectionsReused == 9)
            #expect(figures.finished == 10)
            #expect(figures.engine.hasPrefix("libcurl/"))
        }
        #expect(server.heard.count == 1)
    }

    @Test func aReusedConnectionThatTheServerHasClosedIsReplaced() async throws {
        let server = ScriptedServer([Self.keepAlive], [Self.keepAlive])
        defer { server.stop() }
        try await withEngine { engine in
            for _ in 0..<2 { #expect(await engine.exchange(request(server.url)).text == "ok") }
        }
        #expect(server.heard.count == 2)
    }

    @Test func manyAtOnceAllEnd() async throws {
        let server = ScriptedServer(Array(repeating: Self.keepAlive, count: 300))
        defer { server.stop() }
        try await withEngine { engine in
            let texts = try await withThrowingTaskGroup(of: String?.self) { group in
                for number in 0..<200 {
                    let one = request("\(server.url)/\(number)")
                    group.addTask { await engine.exchange(one).text }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(texts == Array(repeating: "ok", count: 200))
        }
        #expect(server.heard.count <= 64)
    }

    @Test func cancellingEndsATransferAtOnce() async throws {
        let server = ScriptedServer([.hold])
        defer { server.stop() }
        try await withEngine { engine in
            let outcome = Mutex<TransferPort.Outcome?>(nil)
            let id = engine.start(request(server.url)) { result in outcome.withLock { $0 = result } }
            try await until { server.heard.first?.contains("\r\n\r\n") == true }
            engine.cancel(id)
            try await until { outcome.withLock { $0 != nil } }
            #expect(outcome.withLock { $0 }?.failureKind == .cancelled)
            engine.cancel(id)
            #expect(engine.figures.running == 0)
        }
    }

    /// The event loop and its descriptors are released, too.
    @Test func anEngineThatHasEndedIsReleased() async throws {
        let server = ScriptedServer([Self.keepAlive])
        defer { server.stop() }
        weak var loop: EventLoop?
        do {
            let engine = try RemoteEngine()
            loop = engine.sync { $0.loop }
            _ = await engine.exchange(request(server.url))
            engine.shutDown()
        }
        #expect(loop == nil)
    }

    @Test func shuttingDownEndsEveryTransferAndRefusesNewOnes() async throws {
        let server = ScriptedServer([.hold])
        defer { server.stop() }
        let engine = try RemoteEngine()
        let outcomes = Mutex<[TransferFailure.Kind?]>([])
        for _ in 0..<5 {
            _ = engine.start(request(server.url)) { result in outcomes.withLock { $0.append(result.failureKind) } }
        }
        try await until { server.heard.count == 5 }
        engine.shutDown()
        #expect(outcomes.withLock { $0 } == Array(repeating: .cancelled, count: 5))
        engine.shutDown()
        #expect(await engine.exchange(request(server.url)).failureKind == .cancelled)
    }
}
