import Glibc
import TestServers
import Testing
import WatchwordCore

@testable import Transfers

/// Request bodies that are received through a socket.
@Suite(.timed) struct BodySourceTests {
    private func upload(
        _ engine: RemoteEngine, _ url: String, _ source: BodySourceID, _ size: Int?
    ) async -> TransferPort.Outcome {
        var request = request(url, "PUT")
        request.body = .stream(RequestStream(source: source, size: size))
        return await engine.exchange(request)
    }

    @Test(arguments: [3, nil] as [Int?]) func theBodyReachesTheServer(size: Int?) async throws {
        let server = ScriptedServer([okay])
        defer { server.stop() }
        try await withEngine { engine in
            let source = engine.makeSource(size: size, storesCopy: true, memory: nil, disk: nil)
            let (mine, client) = socketPair()
            async let outcome = upload(engine, server.url, source, size)
            engine.attach(source, socket: mine)
            await write("abc", to: client)
            let response = try await outcome.get()
            #expect(response.status == 200)
            #expect(response.requestBody == (size == nil ? response.requestBody : .copied))
            close(client)
        }
        let head = server.heard[0]
        #expect(head.hasPrefix("PUT / HTTP/1.1\r\n"))
        #expect(head.contains(size == nil ? "\r\nTransfer-Encoding: chunked\r\n" : "\r\nContent-Length: 3\r\n"))
        #expect(head.contains("Expect: 100-continue") == (size == nil))
    }

    @Test(arguments: [true, false]) func aBodyCanBeSentAgainOnlyFromACopy(storesCopy: Bool) async throws {
        let body = String(repeating: "0123456789", count: 90_000)
        let server = ScriptedServer([okay], [okay])
        defer { server.stop() }
        try await withEngine { engine in
            let source = engine.makeSource(size: body.utf8.count, storesCopy: storesCopy, memory: nil, disk: nil)
            let (mine, client) = socketPair()
            engine.attach(source, socket: mine)
            async let writing: Void = write(body, to: client)
            let first = try await upload(engine, server.url, source, body.utf8.count).get()
            await writing
            #expect(first.requestBody == (storesCopy ? .copied : .spent))
            let second = await upload(engine, server.url, source, body.utf8.count)
            #expect(second.failureKind == (storesCopy ? nil : .internalError))
            close(client)
        }
    }

    @Test func aBodyThatEndsTooEarlyIsAFailure() async throws {
        let server = ScriptedServer([okay])
        defer { server.stop() }
        try await withEngine { engine in
            let source = engine.makeSource(size: 10, storesCopy: true, memory: nil, disk: nil)
            let (mine, client) = socketPair()
            engine.attach(source, socket: mine)
            await write("abc", to: client)
            let outcome = await upload(engine, server.url, source, 10)
            #expect(outcome.failureKind == .requestBodyIncomplete)
            #expect(outcome.failure?.detail.contains("after 3 of 10 bytes") == true)
            close(client)
        }
    }

    @Test func aReleasedSourceIsGone() async throws {
        let server = ScriptedServer([okay])
        defer { server.stop() }
        try await withEngine { engine in
            let source = engine.makeSource(size: 3, storesCopy: true, memory: nil, disk: nil)
            engine.release(source)
            let (mine, client) = socketPair()
            engine.attach(source, socket: mine)
            #expect(
                await onThread {
                    var byte: UInt8 = 0
                    return recv(client, &byte, 1, 0)
                } == 0)
            #expect(await upload(engine, server.url, source, 3).failureKind == .internalError)
            close(client)
        }
    }

    @Test(arguments: [0, 1, EngineLimits.bodyCopyMemoryBytes, EngineLimits.bodyCopyMemoryBytes + 1, 3 << 20])
    func aCopyReturnsTheAppendedBytes(count: Int) {
        var copy = BodyCopy()
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        for start in stride(from: 0, to: count, by: 100_000) {
            bytes[start..<min(start + 100_000, count)].withUnsafeBytes { copy.append($0) }
        }
        var back = [UInt8](repeating: 0, count: count)
        var offset = 0
        while offset < count {
            let got = back[offset...].withUnsafeMutableBytes { copy.read(from: offset, into: $0) }
            #expect(got > 0)
            if got == 0 { break }
            offset += got
        }
        let isSame = back == bytes
        #expect(isSame)
        let kept = copy.count
        #expect(kept == count)
    }

    @Test func aCopyBeyondTheLimitIsLost() {
        var copy = BodyCopy(limit: 10)
        [UInt8](repeating: 1, count: 10).withUnsafeBytes { copy.append($0) }
        var isLost = copy.isLost
        #expect(!isLost)
        [UInt8](repeating: 1, count: EngineLimits.bodyCopyMemoryBytes).withUnsafeBytes { copy.append($0) }
        isLost = copy.isLost
        #expect(isLost)
        var buffer: [UInt8] = [0]
        #expect(buffer.withUnsafeMutableBytes { copy.read(from: 0, into: $0) } == 0)
    }
}
