import Broker
import CPlatform
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

    @Test("Rules I0 and A3: a peer of another user is disconnected before a byte is read")
    func aPeerOfAnotherUserIsClosedBeforeAByteIsRead() async throws {
        let service = RecordingService()
        try await withServer(service, policy: PeerPolicy(uid: getuid() + 1)) { location, _ in
            let client = try RawClient(location)
            client.send("hello\n")
            #expect(client.receive() == "")
        }
        #expect(service.events.isEmpty)
    }

    @Test(
        "Rule I0: only a process with a pid and the user of the broker is admitted",
        arguments: [(1, 7, true), (0, 7, false), (-1, 7, false), (1, 8, false), (1, UInt32.max, false)]
            as [(Int32, UInt32, Bool)])
    func onlyPeersWithAPidAndTheBrokersUserAreAdmitted(pid: Int32, uid: UInt32, isAdmitted: Bool) {
        #expect(PeerPolicy(uid: 7).admits(PeerIdentity(pid: pid, uid: uid)) == isAdmitted)
        #expect(!PeerPolicy(uid: UInt32.max).admits(PeerIdentity(pid: 1, uid: UInt32.max)))
    }

    /// The bytes from before the identification are passed by themselves.
    @Test("Rule I1: the bytes that were sent before the process was identified are counted")
    func earlyBytesAreCounted() {
        var ends: [Int32] = [0, 0]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        #expect(watchword_waiting_input(ends[0]) == 0)
        #expect(write(ends[1], "early", 5) == 5)
        let early = Int(watchword_waiting_input(ends[0]))
        var input = PeerInput(pid: getpid(), wasListening: true, earlyBytes: early)
        #expect(early == 5 && write(ends[1], "late", 4) == 4)
        var counts: [Int] = []
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { buffer in
            for _ in 0..<2 {
                let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<min(input.room, 64)])
                if case .bytes(let count) = input.read(ends[0], into: room) { counts.append(count) }
            }
        }
        #expect(counts == [5, 4] && input.room == .max)
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

    @Test func aDisconnectedClientIsDetected() async throws {
        let service = RecordingService()
        try await withServer(service) { location, _ in
            var client: RawClient? = try RawClient(location)
            client?.send("x")
            #expect(await eventually { service.events.contains(.received(1, "x")) })
            client = nil
            #expect(await eventually { service.events.contains(.closed(1)) })
        }
    }

    @Test func closeComesAfterTheSentBytes() async throws {
        let service = RecordingService()
        try await withServer(service) { location, _ in
            let client = try RawClient(location)
            client.send("close\n")
            #expect(client.receive() == "")
            #expect(await eventually { service.events.contains(.closed(1)) })
        }
    }

    @Test func aClientThatDoesNotReadIsDisconnectedAtTheLimitAndNotReadBeforeIt() async throws {
        let service = RecordingService {
            $0 == "more\n" ? Array(repeating: UInt8(ascii: "x"), count: 1 << 20) : Array($0.utf8)
        }
        let limits = ServerLimits(
            highWaterMark: 2 << 20, lowWaterMark: 1 << 20, outgoingQueue: 64 << 20, readerPause: .seconds(600))
        try await withServer(service, limits: limits) { location, _ in
            let (client, other) = (try RawClient(location), try RawClient(location))
            for _ in 0..<20 {
                client.send("more\n")
                // Two iterations of the loop: in the first one, `other` may be served before `client`.
                for _ in 0..<2 {
                    other.send("turn\n")
                    #expect(other.receive() == "turn\n")
                }
            }
            // Three or four replies reach the high-water mark; requests after that are not read.
            let answered = service.events.filter { $0 == .received(1, "more\n") }.count
            #expect(answered >= 3 && answered < 10)
            var total = 0
            while total < answered << 20 {
                let count = client.receive(1 << 20).utf8.count
                guard count > 0 else { break }
                total += count
            }
            #expect(total >= answered << 20)
        }
        let largeReplies = RecordingService { _ in Array(repeating: UInt8(ascii: "x"), count: 3 << 20) }
        let tight = ServerLimits(highWaterMark: 1 << 20, lowWaterMark: 1 << 19, outgoingQueue: 2 << 20)
        try await withServer(largeReplies, limits: tight) { location, _ in
            let client = try RawClient(location)
            client.send("more\n")
            #expect(await eventually { largeReplies.events.contains(.closed(1)) })
        }
    }

    @Test func aClientThatReadsTooSlowlyIsDisconnected() async throws {
        let service = RecordingService { _ in Array(repeating: UInt8(ascii: "x"), count: 4 << 20) }
        let limits = ServerLimits(readerPause: .seconds(2), readerBytes: 64 << 10)
        try await withServer(service, limits: limits) { location, _ in
            let (slow, steady) = (try RawClient(location), try RawClient(location))
            slow.send("more\n")
            steady.send("more\n")
            // A separate thread, because tasks wait for those of other tests.
            let total = Mutex(0)
            // A duplicate of the descriptor, because the thread may run for longer than the test.
            let descriptor = dup(steady.descriptor)
            Thread.detachNewThread {
                defer { close(descriptor) }
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

    @Test func largeInputOfOneClientIsReadInParts() async throws {
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

    @Test func theConnectionLimitIsEnforcedAndReleased() async throws {
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

    /// One process cannot use all connections. A child process counts as another process.
    @Test func connectionsOfOneProcessAreLimited() async throws {
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
            let child = try ChildProcess.run(
                ["/usr/bin/python3", "-c", script, location.path], output: .standardOutput)
            #expect(child.text == "b'y'\n")
        }
    }

    /// The server reports how many bytes are unread, and when they have been read; a client that leaves too many is disconnected.
    @Test func unreadBytesAreReported() async throws {
        let service = RecordingService(mayLeave: 4 << 20) { Array(repeating: 0x78, count: Int($0.dropLast()) ?? 0) }
        try await withServer(service, limits: ServerLimits(readerPause: .seconds(600))) { location, _ in
            let client = try RawClient(location)
            client.send("10\n")
            #expect(client.receive().utf8.count == 10)
            // The server also reports that no bytes are unread, because the service may have counted them.
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

    /// The test runs in its own process: otherwise other tests would get descriptors above 1023, and Foundation uses select(2).
    @Test func manyConnectionsMayWaitToBeAccepted() async {
        await #expect(processExitsWith: .success) {
            let isAccepted = try await Self.acceptsWhatHasWaited()
            exit(isAccepted ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }

    private static func acceptsWhatHasWaited() async throws -> Bool {
        let isOver = Atomic(false)
        // Blocks the loop, so that it accepts no connections meanwhile.
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
