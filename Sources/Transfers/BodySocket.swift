internal import Glibc

/// The end of a connected socket over which a body comes or goes without any framing. No call on it waits.
struct BodySocket: ~Copyable {
    let descriptor: Int32

    enum Sent: Equatable {
        case bytes(Int)
        /// Nobody will read any more.
        case peerGone
    }

    enum Input {
        case nothing, end, bytes
    }

    private static let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)

    /// - Parameter descriptor: owned from now on.
    init(owning descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Sends what there is room for.
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

    /// What the peer, which only reads, has to say.
    var input: Input {
        var byte: UInt8 = 0
        switch recv(descriptor, &byte, 1, Self.flags) {
        case 0: return .end
        case 1: return .bytes
        default: return .nothing
        }
    }

    /// The peer has closed its end, and not only its writing side.
    var isPeerGone: Bool {
        var entry = pollfd(fd: descriptor, events: 0, revents: 0)
        return poll(&entry, 1, 0) > 0 && entry.revents & Int16(POLLHUP | POLLERR) != 0
    }
}
