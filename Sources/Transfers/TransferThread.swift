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

    /// The same where nobody needs to know.
    func forward(_ call: @escaping @Sendable (TransferEngine) -> Void) { post(call) }

    /// The same for a call that completes: `completion` is called on `home`.
    func post<Value: Sendable>(
        back home: EventLoop, _ completion: @escaping @Sendable (Value) -> Void,
        _ call: @escaping @Sendable (TransferEngine, @escaping @Sendable (Value) -> Void) -> Void
    ) {
        post { engine in
            call(engine) { value in home.post { completion(value) } }
        }
    }

    /// Ends all transfers, and returns when the thread is gone.
    func shutDown() {
        post { $0.shutDown() }
        thread.end()
    }
}
