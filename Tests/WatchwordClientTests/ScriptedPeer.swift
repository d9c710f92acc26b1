import Foundation
import WatchwordProtocol

/// The peer of one connection, on its own thread. It receives lines and sends bytes.
final class ScriptedPeer: @unchecked Sendable {
    let location: SocketLocation
    private let listener: Int32
    private let folder: URL

    /// `answer` returns the bytes to send in reply to a line; `nil` closes the connection.
    init(_ answer: @escaping @Sendable (String) -> String?) {
        folder = FileManager.default.temporaryDirectory.appending(path: "ww-\(UUID().uuidString.prefix(8))")
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let path = folder.appending(path: "s").path
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        listen(listener, 1)
        self.listener = listener
        location = SocketLocation(explicit: path, environment: { _ in nil }, uid: 7)
        // The listener stays open until the connection is served, also where the test does not name this object again.
        Thread.detachNewThread { [self] in
            withExtendedLifetime(self) { Self.serve(accept(listener, nil, nil), answer) }
        }
    }

    deinit {
        close(listener)
        try? FileManager.default.removeItem(at: folder)
    }

    private static func serve(_ connection: Int32, _ answer: (String) -> String?) {
        // A child process of another test may have inherited the descriptor, and would keep the connection open.
        defer {
            shutdown(connection, Int32(SHUT_RDWR))
            close(connection)
        }
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(connection, &byte, 1) == 1 {
            guard byte == UInt8(ascii: "\n") else {
                line.append(byte)
                continue
            }
            guard let reply = answer(String(decoding: line, as: UTF8.self)) else { return }
            let bytes = Array(reply.utf8)
            _ = send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
            line = []
        }
    }
}
