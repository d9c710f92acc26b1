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
    public func end() {
        guard !hasEnded.exchange(true, ordering: .relaxed) else { return }
        loop.stop()
        pthread_join(thread, nil)
    }
}
