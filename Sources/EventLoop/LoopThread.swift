internal import CPlatform
internal import Glibc
internal import Synchronization

/// A loop with a thread of its own.
public final class LoopThread: Sendable {
    public let loop: EventLoop
    private let thread: pthread_t
    private let hasEnded = Atomic(false)

    /// Starts the thread; `end` ends it.
    public init() throws(LoopFailure) {
        let loop = try EventLoop()
        let argument = Unmanaged.passRetained(loop)
        var thread = pthread_t()
        let status = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<EventLoop>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, argument.toOpaque())
        guard status == 0 else {
            argument.release()
            throw LoopFailure("pthread_create", error: status)
        }
        (self.loop, self.thread) = (loop, thread)
    }

    /// Ends the loop after what was posted before, and returns when the thread is gone. Not to be called on it.
    /// - Parameter seconds: a thread that hangs for longer is left to itself; `nil` to wait for ever.
    /// - Returns: whether it is gone.
    @discardableResult
    public func end(within seconds: Int? = nil) -> Bool {
        guard !hasEnded.exchange(true, ordering: .relaxed) else { return true }
        loop.stop()
        guard let seconds else { return pthread_join(thread, nil) == 0 }
        return watchword_join_within(thread, Int32(seconds)) == 0
    }
}
