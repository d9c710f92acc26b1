internal import Synchronization
internal import Threads

/// An event loop on its own thread.
public final class LoopThread: Sendable {
    public let loop: EventLoop
    private let thread: OwnedThread
    private let hasEnded = Atomic(false)

    /// Starts the thread, which runs the loop until `end` is called.
    public init() throws(LoopFailure) {
        let loop = try EventLoop()
        self.loop = loop
        do throws(OwnedThread.Failure) { thread = try OwnedThread { loop.run() } } catch {
            throw LoopFailure("pthread_create", error: error.error)
        }
    }

    /// Ends the loop after all calls posted before, and waits for the end of its thread. Not to be called on that
    /// thread. Later calls have no effect.
    /// - Parameter seconds: the time limit, after which the thread is detached; `nil` for none.
    /// - Returns: `false` if the time limit was exceeded.
    @discardableResult
    public func end(within seconds: Int? = nil) -> Bool {
        guard !hasEnded.exchange(true, ordering: .relaxed) else { return true }
        loop.stop()
        if let seconds { return thread.join(within: seconds) }
        thread.join()
        return true
    }
}
