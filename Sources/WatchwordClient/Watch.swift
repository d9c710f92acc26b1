public import Glibc

/// A descriptor that is looked at while the broker is waited for, and what is done when it is ready.
public struct Watch {
    public let descriptor: Int32
    /// Whether room to write is waited for, and not bytes to read.
    public let isForWriting: Bool
    public let act: () -> Void

    public init(_ descriptor: Int32, isForWriting: Bool = false, act: @escaping () -> Void) {
        self.descriptor = descriptor
        self.isForWriting = isForWriting
        self.act = act
    }

    /// For poll(2).
    public var entry: pollfd { pollfd(fd: descriptor, events: Int16(isForWriting ? POLLOUT : POLLIN), revents: 0) }
}
