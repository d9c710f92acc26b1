internal import Glibc
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

/// A reference to a value that belongs to a loop. It can be passed through other threads, but read only on the loop.
///
/// `@unchecked Sendable`: `value` checks that it is read on the loop. If the last copy is released on another thread,
/// something on the loop must still refer to the value, so that it is not deinitialized on the other thread.
public struct LoopBound<Value>: @unchecked Sendable {
    private let loop: EventLoop
    private let bound: Value

    public init(_ value: Value, to loop: EventLoop) { (bound, self.loop) = (value, loop) }

    /// The value. To be read on the loop only.
    public var value: Value {
        loop.checkIsolated()
        return bound
    }
}

/// A failed system call of an event loop.
public struct LoopFailure: Error, Equatable, CustomStringConvertible {
    private let call: String
    private let error: Int32

    init(_ call: String, error: Int32 = errno) { (self.call, self.error) = (call, error) }

    public var description: String { "\(call) failed: \(String(cString: strerror(error)))" }
}
