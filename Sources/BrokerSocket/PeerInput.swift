internal import CPlatform
internal import Glibc

/// Reads the input of a client, and checks its sender (SCM_CREDENTIALS): only the process that connected may send. A
/// child process that inherited the descriptor may run another program.
///
/// With SO_PASSCRED, the kernel never returns bytes of two senders in one read.
struct PeerInput {
    enum Read {
        /// The number of bytes read from the peer.
        case bytes(Int)
        /// The number of bytes read, which another process has sent.
        case strangers(Int)
        case nothing
        case end
        case failed(Int32)
    }

    private let pid: Int32
    /// Whether input may lack sender credentials, because it may have been sent before SO_PASSCRED was set.
    private var mayLackCredentials: Bool
    /// The number of bytes that were sent before the peer was identified, and were not read yet.
    private var earlyBytes: Int
    /// Whether the peer has shut down its writing side.
    var hasEnded = false
    /// Whether the next read probably continues a large message.
    var readsMuch = false

    /// - Parameter wasListening: whether clients may have connected and sent data before this process had the listening
    ///   socket.
    ///   - earlyBytes: the number of bytes that were sent before the peer was identified.
    init(pid: Int32, wasListening: Bool, earlyBytes: Int = 0) {
        (self.pid, mayLackCredentials, self.earlyBytes) = (pid, wasListening, earlyBytes)
    }

    /// The most bytes to read at once, so that one read returns no bytes from before and after the identification.
    var room: Int { earlyBytes > 0 ? earlyBytes : .max }  // guard: early-bytes-apart

    mutating func read(_ socket: Int32, into buffer: UnsafeMutableRawBufferPointer) -> Read {
        var sender: Int32 = 0
        let count = watchword_receive(socket, buffer.baseAddress, buffer.count, &sender)
        if count == 0 { return .end }
        guard count > 0 else { return errno == EAGAIN ? .nothing : .failed(errno) }
        earlyBytes -= min(count, earlyBytes)
        let isFromPeer = sender == pid || sender == 0 && mayLackCredentials  // guard: sender
        if sender != 0 { mayLackCredentials = false }
        return isFromPeer ? .bytes(count) : .strangers(count)
    }

    /// Whether the peer has closed its socket, and not only shut down its writing side. The kernel reports POLLHUP when
    /// the last descriptor of the peer's socket is closed, for any reason.
    static func hasHungUp(_ socket: Int32) -> Bool {
        var entry = pollfd(fd: socket, events: 0, revents: 0)
        let found = poll(&entry, 1, 0)
        return found > 0 && Int32(entry.revents) & (POLLHUP | POLLERR | POLLNVAL) != 0
    }
}
