import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// Connections are not shared between identities.
@Suite(.timed) struct IdentityPoolTests {
    private static let script = Array(repeating: okay, count: 20) + [.hold]

    private func request(_ url: String, _ identity: ConnectionIdentity) -> TransferRequest {
        var request = TransfersTests.request(url)
        request.identity = identity
        return request
    }

    @Test("Rules L1, L2 and N1: each identity has connections of its own")
    func everyIdentityHasConnectionsOfItsOwn() async throws {
        let server = ScriptedServer(Self.script)
        defer { server.stop() }
        try await withEngine { engine in
            for _ in 0..<3 {
                for identity in [.none, .number(1), .number(2)] as [ConnectionIdentity] {
                    #expect(await engine.exchange(request("\(server.url)/\(identity)", identity)).text == "ok")
                }
            }
            #expect(engine.figures.connectionsOpened == 3)
            #expect(engine.figures.connectionsReused == 6)
        }
        #expect(server.heard.count == 3)
        for (heard, name) in zip(server.heard, ["none", "number(1)", "number(2)"]) {
            #expect(heard.split(separator: "\r\n").filter { $0.hasPrefix("GET /\(name) ") }.count == 3)
        }
    }

    @Test("Rule L3: the connections of a forgotten identity are closed")
    func aForgottenIdentityStartsAfresh() async throws {
        let server = ScriptedServer(Self.script)
        defer { server.stop() }
        try await withEngine { engine in
            for _ in 0..<2 {
                #expect(await engine.exchange(request(server.url, .number(1))).text == "ok")
                engine.forget(.number(1))
                engine.forget(.number(2))
                engine.forget(.none)
            }
        }
        #expect(server.heard.count == 2)
    }

    @Test func aRepeatedLoginGetsANewConnection() async throws {
        let server = ScriptedServer(Self.script)
        defer { server.stop() }
        try await withEngine { engine in
            var again = request(server.url, .number(1))
            let first = try await engine.exchange(again).get()
            let second = try await engine.exchange(again).get()
            again.needsNewConnection = true
            let third = try await engine.exchange(again).get()
            #expect([first, second, third].map(\.reusedConnection) == [false, true, false])
        }
        #expect(server.heard.count == 2)
    }

    @Test func forgettingLetsRunningTransfersEnd() async throws {
        let server = ScriptedServer([.hold], [okay, .hold])
        defer { server.stop() }
        try await withEngine { engine in
            async let slow = engine.exchange(request(server.url, .number(1)))
            try await until { server.heard.first?.contains("\r\n\r\n") == true }
            engine.forget(.number(1))
            #expect(await engine.exchange(request(server.url, .number(1))).text == "ok")
            #expect(engine.figures.running == 1)
            engine.shutDown()
            #expect(await slow.failureKind == .cancelled)
        }
    }

    @Test func anIdleIdentityIsClosedInTime() async throws {
        let server = ScriptedServer(Self.script)
        defer { server.stop() }
        let engine = try RemoteEngine(idle: IdleLimits(identity: .milliseconds(50)))
        defer { engine.shutDown() }
        #expect(await engine.exchange(request(server.url, .number(1))).text == "ok")
        // The connection is closed without any further call to the engine.
        try await until { server.ended == 1 }
    }

    @Test func manyTransfersOfManyIdentitiesAllEnd() async throws {
        let server = ScriptedServer(Array(repeating: okay, count: 300))
        defer { server.stop() }
        try await withEngine { engine in
            let ends = await withTaskGroup(of: String?.self) { group in
                for number in 0..<200 {
                    let one = request("\(server.url)/\(number)", .number(number % 10))
                    group.addTask { await engine.exchange(one).text }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(ends == Array(repeating: "ok", count: 200))
        }
    }

    @Test func timeoutsAndRefusedConnectionsAreReported() async throws {
        let server = ScriptedServer([.hold])
        defer { server.stop() }
        try await withEngine { engine in
            var slow = request(server.url, .number(1))
            slow.timeout = .milliseconds(50)
            #expect(await engine.exchange(slow).failureKind == .timedOut)
            #expect(await engine.exchange(request("http://127.0.0.1:1/", .number(1))).failureKind == .cannotConnect)
        }
    }
}
