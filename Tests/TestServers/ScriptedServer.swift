import Glibc
import Synchronization

/// An HTTP server that sends exactly the replies of a test, and records every received byte, by connection.
///
/// A script defines the behaviour of one connection: one reply for each received request head. After its last
/// reply the server closes the connection, unless the script ends with `.hold`.
package final class ScriptedServer: Sendable {
    package enum Reply: Sendable {
        case bytes(String)
        /// A header section, and a body of bytes that are not text.
        case data(String, [UInt8])
        /// Sends the result of a function of everything that the connection has received.
        case answer(@Sendable (String) -> String)
        /// Sends the first text, and the second one 20 ms later.
        case twice(String, String)
        /// Sends nothing and keeps the connection open.
        case hold
        /// Closes the connection without a response.
        case close
        /// Responds with 200, and then forwards bytes to and from this port.
        case tunnel(Int, before: String = "")
    }

    private struct State {
        var heard: [[UInt8]] = []
        var scripts: [[Reply]]
        var isStopped = false
        var ended = 0
        var late = 0
    }

    package let port: Int
    private let listener: Int32
    private let state: Mutex<State>

    /// The first connection follows the first script, and so on; the last script is for all further ones.
    package init(_ scripts: [Reply]...) {
        state = Mutex(State(scripts: scripts))
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 512) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        precondition(bound, "no loopback port for a test")
        self.listener = listener
        port = Int(UInt16(bigEndian: address.sin_port))
        run { $0.accept() }
    }

    package var url: String { "http://127.0.0.1:\(port)" }

    /// The bytes received on each connection, in the order in which the connections were accepted.
    package var heard: [String] { state.withLock { $0.heard.map { String(decoding: $0, as: UTF8.self) } } }

    /// The number of connections that were closed by the peer or by the script.
    package var ended: Int { state.withLock { $0.ended } }

    /// The number of late texts that have arrived.
    package var late: Int { state.withLock { $0.late } }

    /// Stops accepting connections. May be called again.
    package func stop() {
        state.withLock { state in
            guard !state.isStopped else { return }
            state.isStopped = true
            shutdown(listener, Int32(SHUT_RDWR))
        }
    }

    private func accept() {
        while true {
            let connection = Glibc.accept(listener, nil, nil)
            guard connection >= 0 else {
                // Closed only here: another test may reuse the descriptor number, and this thread would accept from its socket.
                if state.withLock({ $0.isStopped }) {
                    close(listener)
                    return
                }
                usleep(1000)
                continue
            }
            let (number, script) = state.withLock { state in
                state.heard.append([])
                let script = state.scripts.count > 1 ? state.scripts.removeFirst() : state.scripts[0]
                return (state.heard.count - 1, script)
            }
            run { $0.serve(connection, number, script) }
        }
    }

    private func serve(_ connection: Int32, _ number: Int, _ script: [Reply]) {
        defer {
            close(connection)
            state.withLock { $0.ended += 1 }
        }
        for reply in script {
            guard readRequest(connection, number) else { return }
            switch reply {
            case .bytes(let text): _ = send(connection, text, text.utf8.count, Int32(MSG_NOSIGNAL))
            case .data(let head, let body):
                let all = Array(head.utf8) + body
                _ = send(connection, all, all.count, Int32(MSG_NOSIGNAL))
            case .answer(let make):
                let text = make(heard[number])
                _ = send(connection, text, text.utf8.count, Int32(MSG_NOSIGNAL))
            case .twice(let first, let second):
                _ = send(connection, first, first.utf8.count, Int32(MSG_NOSIGNAL))
                usleep(20_000)
                _ = send(connection, second, second.utf8.count, Int32(MSG_NOSIGNAL))
                Loopback.awaitArrival(of: connection)
                state.withLock { $0.late += 1 }
            case .close: return
            case .tunnel(let port, let before):
                guard let target = Loopback.connect(to: port) else { return }
                _ = send(connection, before, before.utf8.count, Int32(MSG_NOSIGNAL))
                if !before.isEmpty { usleep(20_000) }
                let text = "HTTP/1.1 200 OK\r\n\r\n"
                _ = send(connection, text, text.utf8.count, Int32(MSG_NOSIGNAL))
                return Self.relay(connection, target)
            case .hold: while readSome(connection, number) {}
            }
        }
        shutdown(connection, Int32(SHUT_WR))
        while readSome(connection, number) {}
    }

    /// Reads a head up to its empty line, and a body of the length in the head.
    private func readRequest(_ connection: Int32, _ number: Int) -> Bool {
        let start = state.withLock { $0.heard[number].count }
        while true {
            let bytes = state.withLock { Array($0.heard[number][start...]) }
            let text = String(decoding: bytes, as: UTF8.self)
            if let end = text.range(of: "\r\n\r\n") {
                // If the body is only announced with Expect, the request is complete.
                if text.utf8.count == end && text.contains("\r\nExpect: 100-continue\r\n") { return true }
                let whole = start + end + text.contentLength
                // Compares sizes only: in a debug build a search of the received text is slow.
                while state.withLock({ $0.heard[number].count }) < whole {
                    guard readSome(connection, number) else { return false }
                }
                return true
            }
            guard readSome(connection, number) else { return false }
        }
    }

    private func readSome(_ connection: Int32, _ number: Int) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = recv(connection, &buffer, buffer.count, 0)
        guard count > 0 else { return false }
        state.withLock { $0.heard[number] += buffer[..<count] }
        return true
    }

    private static func relay(_ client: Int32, _ server: Int32) {
        defer { close(server) }
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            var ready = [client, server].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            poll(&ready, 2, -1)
            let (source, sink) = ready[0].revents != 0 ? (client, server) : (server, client)
            let count = recv(source, &buffer, buffer.count, 0)
            guard count > 0, send(sink, buffer, count, Int32(MSG_NOSIGNAL)) == count else { return }
        }
    }

    private func run(_ body: @escaping @Sendable (ScriptedServer) -> Void) {
        Loopback.onThread { body(self) }
    }
}

extension String {
    /// Returns the offset after the first `text`, in bytes.
    fileprivate func range(of text: String) -> Int? {
        let (all, wanted) = (Array(utf8), Array(text.utf8))
        guard all.count >= wanted.count else { return nil }
        return (0...(all.count - wanted.count)).first { all[$0..<($0 + wanted.count)].elementsEqual(wanted) }
            .map { $0 + wanted.count }
    }

    fileprivate var contentLength: Int {
        for line in split(separator: "\r\n") where line.lowercased().hasPrefix("content-length:") {
            return Int(line.split(separator: ":")[1].filter { $0 != " " }) ?? 0
        }
        return 0
    }
}
