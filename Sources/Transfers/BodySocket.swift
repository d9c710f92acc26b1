internal import Glibc
internal import WatchwordCore

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

/// The socket through which a client reads a body.
struct ReaderSocket: ~Copyable {
    private let socket: BodySocket
    /// Whether the last call of `send` could not send everything.
    private(set) var isBlocked = false
    /// Whether the peer has shut down its writing side; it may still read.
    private(set) var hasInputEnded = false

    init(_ socket: consuming BodySocket) { self.socket = socket }

    var descriptor: Int32 { socket.descriptor }

    /// Returns the number of bytes that were sent; `nil` if the peer closed its end.
    mutating func send(_ bytes: UnsafeRawBufferPointer) -> Int? {
        guard case .bytes(let count) = socket.send(bytes) else { return nil }
        isBlocked = count < bytes.count
        return count
    }

    /// Why the delivery must end: the peer closed its end, or sent data. `nil` if neither.
    mutating func problem() -> TransferFailure? {
        if socket.isPeerGone { return .readerGone }
        guard !hasInputEnded else { return nil }
        switch socket.input {
        case .bytes: return .readerWrites
        case .end: hasInputEnded = true
        case .nothing: return nil
        }
        return nil
    }
}
