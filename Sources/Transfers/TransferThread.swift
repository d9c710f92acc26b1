internal import EventLoop
internal import WatchwordCore

/// A transfer engine with its own loop and thread.
final class TransferThread: Sendable {
    private let thread: LoopThread
    private let engine: LoopBound<TransferEngine>

    init(caFile: String?, tokenModule: String? = nil, idle: IdleLimits, ownsTokens: Bool) throws(TransferFailure) {
        do throws(LoopFailure) { thread = try LoopThread() } catch {
            throw TransferFailure(.internalError, "cannot start a thread for transfers: \(error)")
        }
        do throws(TransferFailure) {
            engine = try TransferEngine(
                on: thread.loop, caFile: caFile, tokenModule: tokenModule, idle: idle, ownsTokens: ownsTokens
            ).port
        } catch {
            thread.end()
            throw error
        }
    }

    var loop: EventLoop { thread.loop }

    /// Runs `call` on the engine's loop. Returns `false`, without running it, if the loop has ended.
    @discardableResult
    func post(_ call: @escaping @Sendable (TransferEngine) -> Void) -> Bool {
        thread.loop.post { [engine] in call(engine.value) }
    }

    /// Runs `call` on the engine's loop; `completion` is called on `home`.
    func post<Value: Sendable>(
        back home: EventLoop, _ completion: @escaping @Sendable (Value) -> Void,
        _ call: @escaping @Sendable (TransferEngine, @escaping @Sendable (Value) -> Void) -> Void
    ) {
        post { engine in
            call(engine) { value in home.post { completion(value) } }
        }
    }

    /// How many seconds `shutDown` waits for a thread that hangs, for example in a call to a token.
    private static let patience = 2

    /// Ends all transfers, and waits until the thread has ended, or for `patience` if it hangs.
    func shutDown() {
        post { $0.shutDown() }
        // Leaks the engine: libcurl must not be cleaned up while the thread still uses it.
        if !thread.end(within: Self.patience) { _ = Unmanaged.passRetained(self) }
    }
}
