internal import CPlatform
internal import NIOCore

/// Sees who sends what is read from a connection: only the process that connected may. One that was started by it, and has the
/// descriptor from it, is another program.
///
/// The channel asks its allocator for the size of a buffer right before each read. In that moment the first byte of what is
/// going to be read is looked at; the kernel never puts bytes of two senders into one read where it is asked for senders.
final class SenderWatch: @unchecked Sendable {
    // Unchecked: the channel and its handler are on one event loop.
    private let socket: Int32
    private let pid: Int32
    /// What was sent before the kernel was asked for senders has none.
    private var mayBeNameless: Bool
    /// Whether what has been read last was sent by the peer.
    private(set) var isOfPeer = true

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

/// Buffers as they are, and a look at the sender.
struct WatchedBuffers: RecvByteBufferAllocator {
    let watch: SenderWatch
    private var buffers = AdaptiveRecvByteBufferAllocator()

    init(_ watch: SenderWatch) { self.watch = watch }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { buffers.buffer(allocator: allocator) }

    func nextBufferSize() -> Int? {
        watch.look()
        return buffers.nextBufferSize()
    }

    mutating func record(actualReadBytes: Int) -> Bool { buffers.record(actualReadBytes: actualReadBytes) }
}
