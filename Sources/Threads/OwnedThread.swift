internal import CPlatform
internal import Glibc

/// A POSIX thread, which its owner joins or detaches.
public struct OwnedThread: Sendable {
    /// An error number of pthread_create(3).
    public struct Failure: Error, Equatable {
        public let error: Int32
    }

    private final class Body: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private let thread: pthread_t

    /// Starts a thread that runs `body`. The caller must join or detach it.
    public init(_ body: @escaping @Sendable () -> Void) throws(Failure) {
        let body = Unmanaged.passRetained(Body(body))
        var thread = pthread_t()
        let error = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
                // The next thread may get the same stack with its contents, such as credentials.
                watchword_clear_stack()
                return nil
            }, body.toOpaque())
        guard error == 0 else {
            body.release()
            throw Failure(error: error)
        }
        self.thread = thread
    }

    /// Starts a detached thread. Returns `false` if it cannot be created.
    public static func detach(_ body: @escaping @Sendable () -> Void) -> Bool {
        guard let thread = try? OwnedThread(body) else { return false }
        thread.detach()
        return true
    }

    /// Detaches the thread. To be called at most once, instead of `join`.
    public func detach() { pthread_detach(thread) }

    /// Waits for the end of the thread. To be called at most once, and not on that thread.
    public func join() { pthread_join(thread, nil) }

    /// Waits for the end of the thread, and detaches it if it has not ended after `seconds`. Returns whether it has
    /// ended.
    public func join(within seconds: Int) -> Bool { watchword_join_within(thread, Int32(seconds)) == 0 }
}
