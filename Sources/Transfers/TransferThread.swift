internal import EventLoop
internal import WatchwordCore

/// An engine on a loop and a thread of its own.
final class TransferThread: Sendable {
    private let thread: LoopThread
    private let engine: TransferEngine

    init(caFile: String?, tokenModule: String? = nil, idle: IdleLimits, ownsTokens: Bool) throws(TransferFailure) {
        do throws(LoopFailure) { thread = try LoopThread() } catch {
            throw TransferFailure(.internalError, "No thread for transfers: \(error).")
        }
        do throws(TransferFailure) {
            engine = try TransferEngine(
                on: thread.loop, caFile: caFile, tokenModule: tokenModule, idle: idle, ownsTokens: ownsTokens)
        } catch {
            thread.end()
            throw error
        }
    }

    /// Runs `call` on the engine's loop; never, and `false`, when that has ended.
    @discardableResult
    func post(_ call: @escaping @Sendable (TransferEngine) -> Void) -> Bool {
        thread.loop.post { [engine] in call(engine) }
    }

    /// The same for a call that completes: `completion` is called on `home`.
    func post<Value: Sendable>(
        back home: EventLoop, _ completion: @escaping @Sendable (Value) -> Void,
        _ call: @escaping @Sendable (TransferEngine, @escaping @Sendable (Value) -> Void) -> Void
    ) {
        post { engine in
            call(engine) { value in home.post { completion(value) } }
        }
    }

    /// How long the end waits for what hangs: a token, for example.
    private static let patience = 2

    /// Ends all transfers, and returns when the thread is gone, or hangs.
    func shutDown() {
        post { $0.shutDown() }
        // libcurl is not cleaned up under a thread that is still in it.
        if !thread.end(within: Self.patience) { _ = Unmanaged.passRetained(self) }
    }
}
