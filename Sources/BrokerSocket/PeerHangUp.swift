internal import Glibc
internal import NIOCore

/// Whether the peer of a connection is gone. An end of input alone does not say so: it may have shut down only its writing side.
enum PeerHangUp {
    /// The kernel sets both directions at once when the last descriptor of the peer is closed, however that happens.
    static func isSeen(on channel: any Channel) -> Bool {
        let operations = channel.pipeline.syncOperations
        let isSeen = try? operations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { socket in
            hasHungUp(socket)
        }
        // A channel without a socket has no other direction.
        return isSeen ?? true
    }

    private static func hasHungUp(_ socket: Int32) -> Bool {
        var entry = pollfd(fd: socket, events: 0, revents: 0)
        let found = poll(&entry, 1, 0)
        return found > 0 && Int32(entry.revents) & (POLLHUP | POLLERR | POLLNVAL) != 0
    }
}
