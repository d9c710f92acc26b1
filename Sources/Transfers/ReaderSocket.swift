internal import WatchwordCore

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
