import Broker
import EventLoop
import Glibc
import Logging
import Synchronization
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import BrokerSocket

/// The connections that a front admits, with this process as the broker.
@Suite(.timed) struct FrontServerTests {
    private final class RecordingFronts: FrontService {
        private let count = Mutex(0)

        var opened: Int { count.withLock { $0 } }

        func frontConnectionOpened(
            _ link: any FrontLink, _ peer: FrontPeer, at front: FrontID
        ) -> ConnectionID? {
            count.withLock { $0 += 1 }
            return nil
        }

        func requested(_ request: FrontRequest, _ body: FrontBody, on connection: ConnectionID) {}

        func requestBroken(_ refusal: FrontRefusal, on connection: ConnectionID) {}

        func drained(_ connection: ConnectionID) {}

        func frontConnectionClosed(_ connection: ConnectionID) {}
    }

    /// Returns whether the front has closed the connection without a byte.
    private func isClosed(_ socket: Int32) -> Bool {
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, 0) <= 0
    }

    private func connect(_ address: FrontAddress) -> Int32 {
        switch address {
        case .ipv4(let port):
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var place = sockaddr_in()
            (place.sin_family, place.sin_port) = (sa_family_t(AF_INET), UInt16(port).bigEndian)
            place.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            let result = withUnsafeBytes(of: &place) { bytes in
                Glibc.connect(
                    descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
            }
            #expect(result == 0)
            return descriptor
        case .socket(let path):
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            var place = sockaddr_un()
            place.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &place.sun_path) { $0.copyBytes(from: path.utf8) }
            let result = withUnsafeBytes(of: &place) { bytes in
                Glibc.connect(
                    descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
            }
            #expect(result == 0)
            return descriptor
        case .ipv6: preconditionFailure("not used")
        }
    }

    @Test("A front never serves the broker's own process", arguments: [true, false])
    func aFrontNeverServesTheBroker(isTCP: Bool) throws {
        let folder = PrivateFolder()
        let thread = try LoopThread()
        defer { thread.end() }
        let service = RecordingFronts()
        let server = LoopBound(FrontServer(on: thread.loop, log: Logger(label: "test")), to: thread.loop)
        let place = FrontAddress.socket(path: "\(folder.path)/s")
        let opened = Mutex<FrontAddress?>(nil)
        thread.loop.post {
            server.value.serve(service)
            let address = try? server.value.open(
                FrontID(value: 1), at: isTCP ? .ipv4(port: 0) : place, isLocalhost: true, ancestor: nil)
            opened.withLock { $0 = address }
        }
        while opened.withLock({ $0 == nil }) { usleep(1000) }
        let address = opened.withLock { $0 }
        let descriptor = connect(try #require(address))
        defer { close(descriptor) }
        #expect(isClosed(descriptor))
        #expect(service.opened == 0)
        let own = Mutex<[Bool]>([])
        thread.loop.post {
            let ports = server.value.ownPorts
            let isOpen = address?.port.map { ports.contains($0) } ?? true
            server.value.close(FrontID(value: 1))
            let isOpenStill = address?.port.map { ports.contains($0) } ?? false
            own.withLock { $0 = [isOpen, isOpenStill] }
        }
        while own.withLock(\.isEmpty) { usleep(1000) }
        let hasEnded = Mutex(false)
        thread.loop.post {
            server.value.shutDown()
            hasEnded.withLock { $0 = true }
        }
        while hasEnded.withLock({ !$0 }) { usleep(1000) }
        #expect(own.withLock { $0 } == [true, false], "a listener's port is the broker's own exactly while it is open")
    }
}
