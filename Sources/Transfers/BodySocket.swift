internal import Glibc

/// One end of a connected socket that carries a body without framing. No call on it blocks.
struct BodySocket: ~Copyable {
    let descriptor: Int32

    enum Sent: Equatable {
        case bytes(Int)
        /// The peer no longer reads.
        case peerGone
    }

    enum Input {
        case nothing, end, bytes
    }

    private static let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)

    /// Takes ownership of `descriptor`.
    init(owning descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Sends as many bytes as the socket accepts.
    func send(_ bytes: UnsafeRawBufferPointer) -> Sent {
        var sent = 0
        while sent < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[sent...])
            let count = Glibc.send(descriptor, rest.baseAddress, rest.count, Self.flags)
            if count < 0 && errno == EINTR { continue }
            if count < 0 && errno == EAGAIN { break }
            guard count > 0 else { return .peerGone }
            sent += count
        }
        return .bytes(sent)
    }

    enum Received {
        case bytes(Int)
        case nothing
        case end
    }

    /// Receives the available bytes that fit into `buffer`.
    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Received {
        while true {
            let count = recv(descriptor, buffer.baseAddress, buffer.count, Self.flags)
            if count > 0 { return .bytes(count) }
            if count < 0 && errno == EINTR { continue }
            return count < 0 && errno == EAGAIN ? .nothing : .end
        }
    }

    /// The input from a peer that should only read. Reads at most one byte of it.
    var input: Input {
        var byte: UInt8 = 0
        switch recv(descriptor, &byte, 1, Self.flags) {
        case 0: return .end
        case 1: return .bytes
        default: return .nothing
        }
    }

    /// Whether the peer has closed the connection, and not only shut down its writing side.
    var isPeerGone: Bool {
        var entry = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&entry, 1, 0) > 0 && entry.revents & Int16(POLLHUP | POLLERR) != 0
    }
}
