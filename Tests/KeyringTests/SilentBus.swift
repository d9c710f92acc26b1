import Foundation
import Synchronization

/// A message bus that stops responding at some point but keeps the connection open.
final class SilentBus: Sendable {
    enum Stage: Sendable {
        /// Accepts the connection and does not authenticate.
        case connect
        /// Authenticates and does not reply to Hello.
        case hello
    }

    struct NotStarted: Error {}

    let path: String
    private let listener: Int32
    /// `nil` once it is stopped.
    private let connections = Mutex<[Int32]?>([])

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
                let isStopped = connections.withLock { connections in
                    if connection >= 0 { connections?.append(connection) }
                    return connections == nil
                }
                if isStopped {
                    // Closed only here: another test may reuse the descriptor number.
                    for descriptor in [listener, connection] where descriptor >= 0 { close(descriptor) }
                    return
                }
                guard connection >= 0 else {
                    usleep(1000)
                    continue
                }
                if stage == .hello {
                    // A duplicate, so that `stop` does not close the descriptor in use.
                    let own = dup(connection)
                    Thread.detachNewThread { Self.authenticate(own) }
                }
            }
        }
    }

    var address: String { "unix:path=\(path)" }

    func stop() {
        connections.withLock { connections in
            shutdown(listener, Int32(SHUT_RDWR))
            for connection in connections ?? [] {
                shutdown(connection, Int32(SHUT_RDWR))
                close(connection)
            }
            connections = nil
        }
        unlink(path)
    }

    /// Runs the SASL exchange of D-Bus, line by line, until BEGIN.
    private static func authenticate(_ connection: Int32) {
        defer { close(connection) }
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
            _ = reply.utf8CString.withUnsafeBytes {
                send(connection, $0.baseAddress, reply.utf8.count, Int32(MSG_NOSIGNAL))
            }
        }
    }
}
