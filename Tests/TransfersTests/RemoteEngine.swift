import Dispatch
import EventLoop
import Synchronization
import WatchwordCore

@testable import Transfers

/// An engine on its own thread, usable from any thread.
final class RemoteEngine: TransferPort {
    let thread: TransferThread

    init(caFile: String? = nil, tokenModule: String? = nil, idle: IdleLimits = IdleLimits()) throws {
        thread = try TransferThread(caFile: caFile, tokenModule: tokenModule, idle: idle, ownsTokens: false)
    }

    /// Runs `call` on the engine's thread and waits for its result.
    func sync<Value: Sendable>(_ call: @escaping @Sendable (TransferEngine) -> Value) -> Value {
        let result = Mutex<Value?>(nil)
        let done = DispatchSemaphore(value: 0)
        thread.post { engine in
            let value = call(engine)
            result.withLock { $0 = value }
            done.signal()
        }
        done.wait()
        guard let value = result.withLock({ $0 }) else { preconditionFailure("the engine has ended") }
        return value
    }

    func start(
        _ request: SharedRequest, _ quotas: ResponseQuotas, report: @escaping Report,
        completion: @escaping @Sendable (Outcome) -> Void
    ) -> TransferID {
        let id = TransferID.next()
        let job = TransferJob(id: id, request: request, quotas, report: report, completion: completion)
        if !thread.post({ $0.begin(job) }) { completion(.failure(.shutDown)) }
        return id
    }

    func cancel(_ id: TransferID) { thread.post { $0.cancel(id) } }

    func follow(_ id: TransferID, completion: @escaping @Sendable (Delivery) -> Void) {
        thread.post { $0.follow(id, completion: completion) }
    }

    func read(
        _ id: TransferID, maxBytes: Int, completion: @escaping @Sendable (Result<BodyPart, TransferFailure>) -> Void
    ) {
        let isPosted = thread.post { $0.read(id, maxBytes: maxBytes, completion: completion) }
        if !isPosted { completion(.failure(.shutDown)) }
    }

    func attach(_ id: TransferID, socket: Int32) { thread.post { $0.attach(id, socket: socket) } }

    func makeSource(size: Int?, storesCopy: Bool, memory: Quota?, disk: Quota?) -> BodySourceID {
        sync { $0.makeSource(size: size, storesCopy: storesCopy, memory: memory, disk: disk) }
    }

    func attach(_ source: BodySourceID, socket: Int32) { thread.post { $0.attach(source, socket: socket) } }

    func release(_ source: BodySourceID) { thread.post { $0.release(source) } }

    func open(_ body: [UInt8]) -> TransferID { sync { $0.open(body) } }

    func progress(of id: TransferID, completion: @escaping @Sendable (TransferProgress?) -> Void) {
        thread.post { $0.progress(of: id, completion: completion) }
    }

    func takeTunnel(_ id: TransferID) -> Int32? { sync { $0.takeTunnel(id) } }

    func forget(_ identity: ConnectionIdentity) { thread.post { $0.forget(identity) } }

    var figures: TransferStatistics { sync { $0.figures } }

    func shutDown() { thread.shutDown() }
}
