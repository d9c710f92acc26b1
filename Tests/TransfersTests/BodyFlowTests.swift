import Glibc
import Synchronization
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// Bodies that are streamed while they are received.
@Suite(.timed) struct BodyFlowTests {
    private static func readAll(_ socket: Int32) -> [UInt8] {
        defer { close(socket) }
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { return all }
            all += buffer[..<count]
        }
    }

    private func streamed(_ url: String, _ delivery: BodyDelivery = .fromHeader) -> TransferRequest {
        var request = request(url)
        request.options.delivery = delivery
        request.options.maxBodyBytes = .max
        return request
    }

    private func part(
        _ engine: RemoteEngine, _ id: TransferID, _ count: Int = 1 << 20
    ) async -> Result<BodyPart, TransferFailure> {
        await withCheckedContinuation { continuation in
            engine.read(id, maxBytes: count) { continuation.resume(returning: $0) }
        }
    }

    /// Follows the transfer; the task returns its outcome.
    private func delivery(_ engine: RemoteEngine, _ id: TransferID) -> Task<TransferPort.Delivery, Never> {
        let (stream, continuation) = AsyncStream.makeStream(of: TransferPort.Delivery.self)
        engine.follow(id) { delivery in
            continuation.yield(delivery)
            continuation.finish()
        }
        return Task {
            for await delivery in stream { return delivery }
            return .failure(TransferFailure(.internalError, "nothing was said"))
        }
    }

    private func opened(_ outcome: TransferPort.Outcome) throws -> OpenBody {
        try #require(try outcome.get().openBody)
    }

    /// If the memory quota is used up, a small body is streamed, and that of a 401 response is stored in a file.
    @Test(arguments: [200, 401])
    func bodiesBeyondTheMemoryQuotaAreNotHeldInMemory(status: Int) async throws {
        let body = String(repeating: "x", count: 1000)
        let server = ScriptedServer([
            .bytes("HTTP/1.1 \(status) X\r\nContent-Length: 1000\r\n\r\n\(body)"),
            .bytes("HTTP/1.1 \(status) X\r\nContent-Length: 1000\r\n\r\n\(body)"),
        ])
        defer { server.stop() }
        try await withEngine { engine in
            let quota = Quota(1500)
            let request = streamed(server.url, .beyond(1 << 20))
            let quotas = ResponseQuotas(memory: quota)
            let first = try await engine.exchange(request, quotas).get()
            #expect(first.openBody == nil && first.body.count == 1000 && quota.usage == 1000)
            let second = try await engine.exchange(request, quotas).get()
            #expect(second.body.isEmpty && quota.usage == 1000)
            let open = try #require(second.openBody)
            let ended = delivery(engine, open.transfer)
            #expect(try await part(engine, open.transfer).get().bytes.count == 1000)
            _ = await ended.value
            withExtendedLifetime(first) {}
        }
    }

    @Test func theHeaderComesBeforeTheBody() async throws {
        let server = ScriptedServer([.bytes("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbo"), .hold])
        defer { server.stop() }
        try await withEngine { engine in
            let body = try opened(await engine.exchange(streamed(server.url)))
            #expect(body.announcedBytes == 6)
            let first = BodyPart(bytes: Array("bo".utf8), offset: 0, isAtEnd: false)
            #expect(try await part(engine, body.transfer).get() == first)
            engine.cancel(body.transfer)
            #expect(await delivery(engine, body.transfer).value.failureKind != nil)
            #expect(await part(engine, body.transfer).failureKind != nil)
        }
    }

    @Test(arguments: [1, 3, 100]) func aBodyIsReadInParts(_ count: Int) async throws {
        let server = ScriptedServer([.bytes("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789")])
        defer { server.stop() }
        try await withEngine { engine in
            let body = try opened(await engine.exchange(streamed(server.url)))
            var all: [UInt8] = []
            while true {
                let part = try await part(engine, body.transfer, count).get()
                #expect(part.offset == all.count)
                #expect(part.bytes.count <= count)
                all += part.bytes
                if part.isAtEnd { break }
            }
            #expect(all == Array("0123456789".utf8))
            #expect(await part(engine, body.transfer).failureKind == .internalError)
        }
    }

    @Test func smallBodiesAreStillDeliveredComplete() async throws {
        let server = ScriptedServer([okay, okay])
        defer { server.stop() }
        try await withEngine { engine in
            #expect(await engine.exchange(streamed(server.url, .beyond(2))).text == "ok")
            let body = try opened(await engine.exchange(streamed(server.url, .beyond(1))))
            #expect(try await part(engine, body.transfer).get().bytes == Array("ok".utf8))
        }
    }

    @Test(arguments: [401, 407, 302]) func intermediateResponsesAreDeliveredComplete(_ status: Int) async throws {
        let text = String(repeating: "x", count: 100_000)
        let server = ScriptedServer([.bytes("HTTP/1.1 \(status) No\r\nContent-Length: 100000\r\n\r\n\(text)")])
        defer { server.stop() }
        try await withEngine { engine in
            let response = try await engine.exchange(streamed(server.url)).get()
            #expect(response.openBody == nil)
            #expect(response.body.count == 100_000)
        }
    }

    @Test func anInterimResponseIsNotTheResponse() async throws {
        let server = ScriptedServer([
            .bytes("HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nC: d\r\nContent-Length: 2\r\n\r\nok")
        ])
        defer { server.stop() }
        try await withEngine { engine in
            let response = try await engine.exchange(streamed(server.url)).get()
            #expect(response.status == 200)
            #expect(response.headers.map(\.name) == ["C", "Content-Length"])
        }
    }

    @Test func aSocketGetsAllAndThenTheEnd() async throws {
        let text = String(repeating: "0123456789abcdef", count: 1 << 16)
        let server = ScriptedServer([.bytes("HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)")])
        defer { server.stop() }
        try await withEngine { engine in
            let body = try opened(await engine.exchange(streamed(server.url)))
            let (mine, reader) = socketPair()
            engine.attach(body.transfer, socket: mine)
            let end = delivery(engine, body.transfer)
            let all = await onThread { Self.readAll(reader) }
            // `#expect` would take hours to describe a difference of millions of bytes.
            let isWhole = all == Array(text.utf8)
            #expect(isWhole)
            #expect(try await end.value.get() == text.utf8.count)
        }
    }

    @Test func aReaderThatDoesNotReadAppliesBackpressure() async throws {
        let text = String(repeating: "x", count: 8 << 20)
        let server = ScriptedServer([.bytes("HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)")])
        defer { server.stop() }
        try await withEngine { engine in
            let body = try opened(await engine.exchange(streamed(server.url)))
            var last = 0
            for _ in 0..<10_000 where last < EngineLimits.bodyBufferBytes {
                try await Task.sleep(for: .milliseconds(2))
                // `nil` if the transfer has ended.
                guard let progress = await progress(engine, body.transfer) else { break }
                last = progress.receivedBytes
            }
            #expect(last >= EngineLimits.bodyBufferBytes)
            // In these iterations of the loop the engine would continue to read: the rest of the body is in its socket.
            let other = ScriptedServer(Array(repeating: okay, count: 50))
            defer { other.stop() }
            for _ in 0..<50 { #expect(await engine.exchange(request(other.url)).text == "ok") }
            last = try #require(await progress(engine, body.transfer)).receivedBytes
            #expect(last <= EngineLimits.bodyBufferBytes + EngineLimits.streamedChunkBytes)
            // After that the transfer continues.
            var count = 0
            while true {
                let part = try await part(engine, body.transfer).get()
                count += part.bytes.count
                if part.isAtEnd { break }
            }
            #expect(count == text.utf8.count)
        }
    }

    @Test func unreadBodiesDoNotUseUpTheConnectionsOfOthers() async throws {
        let server = ScriptedServer([
            .answer { $0.contains("GET /slow") ? "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbo" : okayText }, .hold,
        ])
        defer { server.stop() }
        try await withEngine { engine in
            for _ in 0...EngineLimits.connectionsPerHost {
                _ = try opened(await engine.exchange(streamed("\(server.url)/slow")))
            }
            #expect(await engine.exchange(request("\(server.url)/fast", timeout: .seconds(20))).text == "ok")
        }
    }

    private func progress(_ engine: RemoteEngine, _ id: TransferID) async -> TransferProgress? {
        await withCheckedContinuation { continuation in
            engine.progress(of: id) { continuation.resume(returning: $0) }
        }
    }

    @Test func aReaderThatDisconnectsEndsTheTransfer() async throws {
        try await withHalfABody { engine, reader, end in
            // When both bytes are there the engine has the socket, and waits for the server.
            #expect(await takeHalf(reader) == 2)
            close(reader)
            #expect(await end.value.failureKind == .cancelled)
            try await until { engine.figures.running == 0 }
        }
    }

    /// Receives the two bytes of `withHalfABody`, and returns their number.
    private func takeHalf(_ reader: Int32) async -> Int {
        await onThread {
            var bytes: [UInt8] = [0, 0]
            return recv(reader, &bytes, bytes.count, Int32(MSG_WAITALL))
        }
    }

    /// Runs `use` with a body of which two of six bytes have arrived; the server sends no more.
    private func withHalfABody(
        _ use: (RemoteEngine, Int32, Task<TransferPort.Delivery, Never>) async throws -> Void
    ) async throws {
        let server = ScriptedServer([.bytes("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbo"), .hold])
        defer { server.stop() }
        try await withEngine { engine in
            let body = try opened(await engine.exchange(streamed(server.url)))
            let (mine, reader) = socketPair()
            engine.attach(body.transfer, socket: mine)
            try await use(engine, reader, delivery(engine, body.transfer))
        }
    }

    /// The body of a challenge cannot be read before the answer, for which a person may need any time.
    @Test func theReaderHasADeadlineOnlyOnceTheBodyMayBeRead() {
        let flow = BodyFlow(start: [1])
        flow.end(.success(()))
        #expect(flow.deadline == nil)
        flow.follow { _ in }
        #expect(flow.deadline != nil)
    }

    /// The sizes are below, at and above the number of bytes that are freed at once.
    @Test(arguments: [1, EngineLimits.sentChunkBytes, 1 << 20]) func aSocketWithoutAReaderCancelsTheBody(_ count: Int) {
        let flow = BodyFlow(start: [UInt8](repeating: 1, count: count))
        let (mine, reader) = socketPair()
        close(reader)
        flow.attach(BodySocket(owning: mine))
        #expect(flow.outcome?.failureKind == .cancelled)
        #expect(flow.watched == nil)
    }

    @Test func aReaderMayShutDownItsWritingSide() async throws {
        try await withHalfABody { engine, reader, _ in
            shutdown(reader, Int32(SHUT_WR))
            #expect(await takeHalf(reader) == 2)
            // In these iterations of the loop the engine would notice the end of the socket.
            let other = ScriptedServer(Array(repeating: okay, count: 20))
            defer { other.stop() }
            for _ in 0..<20 { #expect(await engine.exchange(request(other.url)).text == "ok") }
            #expect(engine.figures.running == 1)
            close(reader)
        }
    }

    @Test func aReaderThatWritesCancelsTheBody() async throws {
        try await withHalfABody { _, reader, end in
            _ = write(reader, "x", 1)
            #expect(await end.value.failureKind == .cancelled)
            close(reader)
        }
    }

    @Test func aServerThatAbortsIsAFailure() async throws {
        let server = ScriptedServer([.bytes("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbo")])
        defer { server.stop() }
        try await withEngine { engine in
            let body = try opened(await engine.exchange(streamed(server.url)))
            let end = delivery(engine, body.transfer)
            #expect(try await part(engine, body.transfer).get().bytes == Array("bo".utf8))
            #expect(await part(engine, body.transfer).failureKind == .connectionLost)
            #expect(await end.value.failureKind == .connectionLost)
        }
    }

    @Test func aBodyThatIsTooLargeEnds() async throws {
        let server = ScriptedServer([.bytes("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"), .hold])
        defer { server.stop() }
        try await withEngine { engine in
            var request = streamed(server.url)
            request.options.maxBodyBytes = 9
            #expect(await engine.exchange(request).failureKind == .bodyTooLarge)
        }
    }

    @Test func theEndOfTheEngineEndsBodies() async throws {
        let server = ScriptedServer([.bytes("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbo"), .hold])
        defer { server.stop() }
        let engine = try RemoteEngine()
        let body = try opened(await engine.exchange(streamed(server.url)))
        let end = delivery(engine, body.transfer)
        engine.shutDown()
        #expect(await end.value.failureKind == .cancelled)
        #expect(await part(engine, body.transfer).failureKind == .cancelled)
    }
}

private let okayText = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

extension Result where Failure == TransferFailure {
    fileprivate var failureKind: TransferFailure.Kind? {
        if case .failure(let failure) = self { failure.kind } else { nil }
    }
}
