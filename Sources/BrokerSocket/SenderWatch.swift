internal import CPlatform
internal import NIOCore

/// Sees who sends what is read from a connection: only the process that connected may. One that was started by it, and has the
/// descriptor from it, is another program.
///
/// The channel asks its allocator for the size of a buffer right before each read. In that moment the first byte of what is
/// going to be read is looked at; the kernel never puts bytes of two senders into one read where it is asked for senders. With
/// one read for each time that the socket is readable there is always such a byte.
final class SenderWatch: @unchecked Sendable {
    // Unchecked: the channel and its handler are on one event loop.
    private let socket: Int32
    private let pid: Int32
    /// What was sent before the kernel was asked for senders has none.
    private var mayBeNameless: Bool
    /// Whether what has been read last was sent by the peer.
    private(set) var isOfPeer = true
    /// The next read is of a large message.
    var readsMuch = false

    /// - Parameter wasListening: clients may have connected, and sent, before this process had the listening socket.
    init(socket: Int32, pid: Int32, wasListening: Bool) {
        (self.socket, self.pid) = (socket, pid)
        mayBeNameless = wasListening
    }

    /// At the end of a connection there is no byte, and no sender.
    fileprivate func look() {
        var sender: Int32 = 0
        let count = watchword_next_sender(socket, &sender)
        isOfPeer = count == 0 || count > 0 && (sender == pid || sender == 0 && mayBeNameless)
        if sender != 0 { mayBeNameless = false }
    }
}

/// A small buffer, which the channel keeps; for each read of a large message a large one, which it does not keep: what is read of
/// small messages at once would grow with it. And a look at the sender.
struct WatchedBuffers: RecvByteBufferAllocator {
    let watch: SenderWatch
    let limits: ServerLimits

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
        allocator.buffer(capacity: watch.readsMuch ? limits.largeReadBytes : limits.readBytes)
    }

    /// Without a size the channel takes a new buffer, if `record` has said that it may be larger.
    func nextBufferSize() -> Int? {
        watch.look()
        return watch.readsMuch ? nil : limits.readBytes
    }

    mutating func record(actualReadBytes: Int) -> Bool { watch.readsMuch }
}
