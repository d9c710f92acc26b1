public import Glibc

/// A descriptor that is polled while waiting for the broker, and the action to run when it is ready.
public struct Watch {
    public let descriptor: Int32
    /// Whether to wait until the descriptor is writable, not readable.
    public let isForWriting: Bool
    public let act: () -> Void

    public init(_ descriptor: Int32, isForWriting: Bool = false, act: @escaping () -> Void) {
        self.descriptor = descriptor
        self.isForWriting = isForWriting
        self.act = act
    }

    /// The entry for poll(2).
    public var entry: pollfd { pollfd(fd: descriptor, events: Int16(isForWriting ? POLLOUT : POLLIN), revents: 0) }
}
