import Foundation
import Synchronization

/// A message bus that goes along to some point, and from then on says nothing and keeps the connection.
final class SilentBus: Sendable {
    enum Stage: Sendable {
        /// Accepts, and does not authenticate.
        case connect
        /// Authenticates, and does not answer Hello.
        case hello
    }

    struct NotStarted: Error {}

    let path: String
    private let listener: Int32
    private let connections = Mutex<[Int32]>([])

    init(until stage: Stage) throws {
        path = "/tmp/silent-bus-\(UUID().uuidString.prefix(8))"
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let isBound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        guard isBound, listen(listener, 8) == 0 else { throw NotStarted() }
        Thread.detachNewThread { [self] in
            while true {
                let connection = accept(listener, nil, nil)
                guard connection >= 0 else { return }
                connections.withLock { $0.append(connection) }
                if stage == .hello { Thread.detachNewThread { Self.authenticate(connection) } }
            }
        }
    }

    var address: String { "unix:path=\(path)" }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        for descriptor in [listener] + connections.withLock({ $0 }) { close(descriptor) }
        unlink(path)
    }

    /// The SASL conversation of D-Bus, line by line, to its end.
    private static func authenticate(_ connection: Int32) {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(connection, &byte, 1) == 1 {
            line.append(byte)
            guard byte == UInt8(ascii: "\n") else { continue }
            let text = String(decoding: line.drop { $0 == 0 }, as: UTF8.self)
            line = []
            if text.hasPrefix("BEGIN") { return }
            let reply =
                text.hasPrefix("AUTH EXTERNAL")
                ? "OK 0123456789abcdef0123456789abcdef\r\n"
                : text.hasPrefix("AUTH") ? "REJECTED EXTERNAL\r\n" : "ERROR\r\n"
            _ = reply.utf8CString.withUnsafeBytes { write(connection, $0.baseAddress, reply.utf8.count) }
        }
    }
}
