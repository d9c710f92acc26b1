import Synchronization
import WatchwordCore
import WatchwordProtocol

/// A way out to the network that a test plays: requests wait until they are answered.
final class FakeTransfers: TransferPort {
    private struct Open {
        let request: TransferRequest
        let completion: @Sendable (Outcome) -> Void
    }

    private struct State {
        var last = 0
        var open: [Int: Open] = [:]
        var requests: [TransferRequest] = []
        var cancelled: [Int] = []
    }

    private let state = Mutex(State())

    /// All requests so far.
    var requests: [TransferRequest] { state.withLock { $0.requests } }

    var openCount: Int { state.withLock { $0.open.count } }

    var cancelledCount: Int { state.withLock { $0.cancelled.count } }

    func start(_ request: TransferRequest, completion: @escaping @Sendable (Outcome) -> Void) -> TransferID {
        state.withLock { state in
            state.last += 1
            state.requests.append(request)
            state.open[state.last] = Open(request: request, completion: completion)
            return TransferID(value: state.last)
        }
    }

    func cancel(_ id: TransferID) {
        let open = state.withLock { state in
            state.cancelled.append(id.value)
            return state.open.removeValue(forKey: id.value)
        }
        open?.completion(.failure(TransferFailure(.cancelled, "cancelled")))
    }

    var figures: TransferFigures {
        TransferFigures(engine: "fake", running: openCount, finished: 0, connectionsOpened: 0, connectionsReused: 0)
    }

    /// Answers the oldest open request.
    func respond(_ status: Int, _ headers: [HeaderField] = [], body: String = "") {
        complete(.success(TransferResponse(status: status, headers: headers, body: Array(body.utf8))))
    }

    func challenge(_ realm: String = "r") {
        respond(401, [HeaderField("WWW-Authenticate", "Basic realm=\"\(realm)\"")])
    }

    func complete(_ outcome: Outcome) {
        let open = state.withLock { state in
            state.open.keys.min().flatMap { state.open.removeValue(forKey: $0) }
        }
        open?.completion(outcome)
    }
}
