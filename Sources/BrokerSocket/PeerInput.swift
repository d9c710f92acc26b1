internal import CPlatform
internal import Glibc

/// What a client sends, and who has sent it: only the process that connected may. One that was started by it, and has the
/// descriptor from it, is another program.
///
/// The kernel never puts bytes of two senders into one read where it is asked for senders.
struct PeerInput {
    enum Read {
        /// So many bytes, from the peer.
        case bytes(Int)
        /// Another process has sent them.
        case strangers(Int)
        case nothing
        case end
        case failed(Int32)
    }

    private let pid: Int32
    /// What was sent before the kernel was asked for senders has none.
    private var mayBeNameless: Bool

    /// - Parameter wasListening: clients may have connected, and sent, before this process had the listening socket.
    init(pid: Int32, wasListening: Bool) { (self.pid, mayBeNameless) = (pid, wasListening) }

    mutating func read(_ socket: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Read {
        var sender: Int32 = 0
        let count = watchword_receive(socket, buffer.baseAddress, buffer.count, &sender)
        if count == 0 { return .end }
        guard count > 0 else { return errno == EAGAIN ? .nothing : .failed(errno) }
        let isOfPeer = sender == pid || sender == 0 && mayBeNameless
        if sender != 0 { mayBeNameless = false }
        return isOfPeer ? .bytes(count) : .strangers(count)
    }

    /// Whether the peer is gone. The end of its input does not say so: it may have shut down only its writing side. The kernel
    /// sets both directions at once when the last descriptor of the peer is closed, however that happens.
    static func hasHungUp(_ socket: Int32) -> Bool {
        var entry = pollfd(fd: socket, events: 0, revents: 0)
        let found = poll(&entry, 1, 0)
        return found > 0 && Int32(entry.revents) & (POLLHUP | POLLERR | POLLNVAL) != 0
    }
}
