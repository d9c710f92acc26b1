import Broker
import Foundation
import Glibc
import Synchronization
import TestServers
import Testing
import WatchwordProtocol

@testable import BrokerSocket

@Suite(.timed) struct BrokerServerTests {
    @Test func bytesGoBothWaysInOrder() async throws {
        let service = RecordingService()
        try await withServer(service) { location, _ in
            let client = try RawClient(location)
            for number in 0..<100 {
                client.send("\(number)\n")
                #expect(client.receive() == "\(number)\n")
            }
        }
        #expect(service.events.first == .opened(1))
        #expect(service.events.filter { if case .received = $0 { true } else { false } }.count == 100)
    }

    @Test func aPeerOfAnotherUserIsClosedBeforeAByteIsRead() async throws {
        let service = RecordingService()
        try await withServer(service, policy: PeerPolicy(uid: getuid() + 1)) { location, _ in
            let client = try RawClient(location)
            client.send("hello\n")
            #expect(client.receive() == "")
        }
        #expect(service.events.isEmpty)
    }

    @Test(
        arguments: [(1, 7, true), (0, 7, false), (-1, 7, false), (1, 8, false), (1, UInt32.max, false)]
            as [(Int32, UInt32, Bool)])
    func whoMayTalk(pid: Int32, uid: UInt32, isAdmitted: Bool) {
        #expect(PeerPolicy(uid: 7).admits(PeerIdentity(pid: pid, uid: uid)) == isAdmitted)
        #expect(!PeerPolicy(uid: UInt32.max).admits(PeerIdentity(pid: 1, uid: UInt32.max)))
    }

    @Test func aHalfClosedClientStillGetsItsReplies() async throws {
        let service = RecordingService()
        try await withServer(service) { location, _ in
            let client = try RawClient(location)
            client.send("last\n")
            shutdown(client.descriptor, Int32(SHUT_WR))
            #expect(client.receive(5) == "last\n")
            #expect(client.receive() == "bye")
            #expect(client.receive() == "")
            #expect(await eventually { service.events.contains(.closed(1)) })
        }
        #expect(service.events.contains(.inputEnded(1)))
    }

    @Test func aClientThatGoesAwayIsNoticed() async throws {
        let service = RecordingService()
        try await withServer(service) { location, _ in
            var client: RawClient? = try RawClient(location)
            client?.send("x")
            #expect(await eventually { service.events.contains(.received(1, "x")) })
            client = nil
            #expect(await eventually { service.events.contains(.closed(1)) })
        }
    }

    @Test func closeComesBehindWhatWasSent() async throws {
        let service = RecordingService()
        try await withServer(service) { location, _ in
            let client = try RawClient(location)
            client.send("close\n")
            #expect(client.receive() == "")
            #expect(await eventually { service.events.contains(.closed(1)) })
        }
    }

    @Test func whoDoesNotReadIsDisconnectedAtTheLimitAndNotReadFromBefore() async throws {
        let service = RecordingService { _ in Array(repeating: UInt8(ascii: "x"), count: 1 << 20) }
        let limits = ServerLimits(
            highWaterMark: 2 << 20, lowWaterMark: 1 << 20, outgoingQueue: 64 << 20, readerPause: .seconds(600))
        try await withServer(service, limits: limits) { location, _ in
            let client = try RawClient(location)
            for _ in 0..<20 {
                client.send("more\n")
                try await Task.sleep(for: .milliseconds(5))
            }
            try await Task.sleep(for: .milliseconds(100))
            // Three or four fill the mark; what was sent after that is not read.
            let answered = service.events.filter { if case .received = $0 { true } else { false } }.count
            #expect(answered < 10)
            var total = 0
            while total < answered << 20 {
                let count = client.receive(1 << 20).utf8.count
                guard count > 0 else { break }
                total += count
            }
            #expect(total >= answered << 20)
        }
        let flood = RecordingService { _ in Array(repeating: UInt8(ascii: "x"), count: 3 << 20) }
        let tight = ServerLimits(highWaterMark: 1 << 20, lowWaterMark: 1 << 19, outgoingQueue: 2 << 20)
        try await withServer(flood, limits: tight) { location, _ in
            let client = try RawClient(location)
            client.send("more\n")
            #expect(await eventually { flood.events.contains(.closed(1)) })
        }
    }

    @Test func whoTakesTooLittleForTooLongIsDisconnected() async throws {
        let service = RecordingService { _ in Array(repeating: UInt8(ascii: "x"), count: 4 << 20) }
        let limits = ServerLimits(readerPause: .seconds(2), readerBytes: 64 << 10)
        try await withServer(service, limits: limits) { location, _ in
            let (slow, steady) = (try RawClient(location), try RawClient(location))
            slow.send("more\n")
            steady.send("more\n")
            // On a thread of its own: tasks wait for those of other tests.
            let total = Mutex(0)
            let descriptor = steady.descriptor
            Thread.detachNewThread {
                var block = [UInt8](repeating: 0, count: 64 << 10)
                while total.withLock({ $0 }) < 4 << 20 {
                    let count = recv(descriptor, &block, block.count, 0)
                    guard count > 0 else { return }
                    total.withLock { $0 += count }
                    usleep(10_000)
                }
            }
            #expect(await eventually { total.withLock { $0 } == 4 << 20 })
            #expect(await eventually { service.events.contains(.closed(1)) })
            #expect(!service.events.contains(.closed(2)))
        }
    }

    @Test func whatOneClientSendsAtOnceIsReadInParts() async throws {
        let service = RecordingService { _ in nil }
        try await withServer(service) { location, _ in
            let client = try RawClient(location)
            client.send(String(repeating: "short\n", count: 10_000))
            #expect(await eventually { service.receivedCount == 60_000 })
            #expect(service.largestRead <= 512)
            client.send(String(repeating: "l", count: 100_000) + "\n")
            #expect(await eventually { service.receivedCount == 160_001 })
        }
        #expect(service.largestRead <= 64 << 10)
    }

    @Test func connectionsAreLimitedAndComeBack() async throws {
        let service = RecordingService()
        try await withServer(service, limits: ServerLimits(connections: 3, connectionsOfProcess: 3)) { location, _ in
            var clients = try (0..<3).map { _ in try RawClient(location) }
            for client in clients {
                client.send("x")
                #expect(client.receive() == "x")
            }
            let extra = try RawClient(location)
            #expect(extra.receive() == "")
            clients.removeLast()
            #expect(await eventually { service.events.contains { if case .closed = $0 { true } else { false } } })
            let next = try RawClient(location)
            next.send("y")
            #expect(next.receive() == "y")
        }
    }

    /// One process does not keep the others out: a child is one of those.
    @Test func oneProcessHasFewerThanAll() async throws {
        let service = RecordingService()
        try await withServer(service, limits: ServerLimits(connections: 3, connectionsOfProcess: 2)) { location, _ in
            let clients = try (0..<2).map { _ in try RawClient(location) }
            for client in clients {
                client.send("x")
                #expect(client.receive() == "x")
            }
            #expect(try RawClient(location).receive() == "")
            let script = """
                import socket, sys
                client = socket.socket(socket.AF_UNIX)
                client.connect(sys.argv[1])
                client.send(b'y')
                print(client.recv(9))
                """
            let child = Process()
            child.executableURL = URL(filePath: "/usr/bin/python3")
            child.arguments = ["-c", script, location.path]
            let output = Pipe()
            child.standardOutput = output
            try child.run()
            #expect(String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self) == "b'y'\n")
            child.waitUntilExit()
        }
    }

    /// What waits to be read is said, and that it was taken in the end; who leaves too much is sent away.
    @Test func whatIsNotReadIsTold() async throws {
        let service = RecordingService(mayLeave: 4 << 20) { Array(repeating: 0x78, count: Int($0.dropLast()) ?? 0) }
        try await withServer(service, limits: ServerLimits(readerPause: .seconds(600))) { location, _ in
            let client = try RawClient(location)
            client.send("10\n")
            #expect(client.receive().utf8.count == 10)
            // Also that nothing waits: somebody may have counted with it.
            #expect(await eventually { service.tellings > 0 } && service.unread == 0)
            client.send("3000000\n")
            #expect(await eventually { service.mostUnread > 2_000_000 })
            var taken = 0
            while taken < 3_000_000, case let count = client.receive().utf8.count, count > 0 { taken += count }
            #expect(taken == 3_000_000)
            #expect(await eventually { service.unread == 0 })
            client.send("6000000\n")
            #expect(await eventually { service.events.contains { if case .closed = $0 { true } else { false } } })
        }
    }

    /// In a process of its own: its descriptors would lift those of other tests above 1023, and Foundation waits with select(2).
    @Test func manyMayWaitToBeAccepted() async {
        await #expect(processExitsWith: .success) {
            let isAccepted = try await Self.acceptsWhatHasWaited()
            exit(isAccepted ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }

    private static func acceptsWhatHasWaited() async throws -> Bool {
        let isOver = Atomic(false)
        // Keeps the loop from accepting meanwhile.
        let service = RecordingService { _ in
            while !isOver.load(ordering: .relaxed) { usleep(1000) }
            return nil
        }
        let isAccepted = Mutex(false)
        try await withServer(service) { location, _ in
            let blocker = try RawClient(location)
            blocker.send("x")
            guard await eventually({ service.events.contains(.received(1, "x")) }) else { return }
            var clients: [RawClient] = []
            defer { isOver.store(true, ordering: .relaxed) }
            for _ in 0..<600 { clients.append(try RawClient(location, waits: false)) }
            isOver.store(true, ordering: .relaxed)
            let isDone = await eventually { service.events.contains(.opened(601)) }
            isAccepted.withLock { $0 = isDone }
        }
        return isAccepted.withLock { $0 }
    }

    @Test func stoppingRefusesNewClientsAndKeepsTheOldOnes() async throws {
        let service = RecordingService()
        try await withServer(service) { location, server in
            let client = try RawClient(location)
            client.send("x")
            #expect(client.receive() == "x")
            server.stop()
            #expect(throws: RawClient.Refused.self) { try RawClient(location) }
            client.send("y")
            #expect(client.receive() == "y")
        }
    }
}
