import Dispatch
import Synchronization

/// Lets the main thread, which has signals to wait for, run something asynchronous to its end.
enum Blocking {
    static func run<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) throws -> Value {
        let result = Slot<Value>()
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            do { result.set(.success(try await body())) } catch { result.set(.failure(error)) }
            done.signal()
        }
        done.wait()
        return try result.get()
    }

    private final class Slot<Value: Sendable>: Sendable {
        private let value = Mutex<Result<Value, any Error>?>(nil)

        func set(_ result: Result<Value, any Error>) { value.withLock { $0 = result } }

        func get() throws -> Value {
            guard let result = value.withLock({ $0 }) else { preconditionFailure("read before it was written") }
            return try result.get()
        }
    }
}
