import Glibc
import Synchronization
import WatchwordCore
import WatchwordProtocol

/// A fake of the network: requests wait until the test answers them.
final class FakeTransfers: TransferPort {
    private struct Open {
        let request: TransferRequest
        let completion: @Sendable (Outcome) -> Void
    }

    private struct State {
        var last = 0
        var open: [Int: Open] = [:]
        var requests: [TransferRequest] = []
        var lastQuotas = ResponseQuotas()
        var cancelled: [Int] = []
        var bodies: [TransferID: FakeBody] = [:]
        var attached: [TransferID] = []
        var saysEndsLater = false
        var sources: [BodySourceID: Bool] = [:]
        var memories: [BodySourceID: Quota] = [:]
        var disks: [BodySourceID: Quota] = [:]
        var fedSources: [BodySourceID] = []
        /// Open requests by the order of their starts.
        var started: [Int] = []
    }

    /// A body that was created by `open` or by a test.
    private struct FakeBody {
        var bytes: [UInt8]
        var offset = 0
        var follower: (@Sendable (Delivery) -> Void)?
    }

    private let state = Mutex(State())
    private let loop: FakeLoop

    init(on loop: FakeLoop) { self.loop = loop }

    /// All requests so far.
    var requests: [TransferRequest] { state.withLock { $0.requests } }

    /// The quotas of the last request.
    var lastQuotas: ResponseQuotas { state.withLock { $0.lastQuotas } }

    var openCount: Int { state.withLock { $0.open.count } }

    var cancelledCount: Int { state.withLock { $0.cancelled.count } }

    func start(
        _ shared: SharedRequest, _ quotas: ResponseQuotas, report: @escaping Report,
        completion: @escaping @Sendable (Outcome) -> Void
    ) -> TransferID {
        state.withLock { state in
            let request = shared.value
            state.last += 1
            state.requests.append(request)
            state.lastQuotas = quotas
            state.started.append(state.last)
            state.open[state.last] = Open(request: request, completion: completion)
            return TransferID(value: state.last)
        }
    }

    func cancel(_ id: TransferID) {
        let open = state.withLock { state in
            state.cancelled.append(id.value)
            return state.open.removeValue(forKey: id.value)
        }
        if let open { loop.post { open.completion(.failure(TransferFailure(.cancelled, "cancelled"))) } }
        endBody(id, .failure(TransferFailure(.cancelled, "cancelled")))
    }

    // MARK: Bodies

    func open(_ body: [UInt8]) -> TransferID {
        state.withLock { state in
            state.last += 1
            let id = TransferID(value: state.last)
            state.bodies[id] = FakeBody(bytes: body)
            return id
        }
    }

    func follow(_ id: TransferID, completion: @escaping @Sendable (Delivery) -> Void) {
        state.withLock { $0.bodies[id]?.follower = completion }
    }

    func read(
        _ id: TransferID, maxBytes: Int, completion: @escaping @Sendable (Result<BodyPart, TransferFailure>) -> Void
    ) {
        let part = state.withLock { state -> BodyPart? in
            guard let body = state.bodies[id] else { return nil }
            let end = min(body.offset + maxBytes, body.bytes.count)
            state.bodies[id]?.offset = end
            return BodyPart(
                bytes: Array(body.bytes[body.offset..<end]), offset: body.offset, isAtEnd: end == body.bytes.count)
        }
        guard let part else { return completion(.failure(TransferFailure(.internalError, "no such body"))) }
        completion(.success(part))
        if part.isAtEnd && !saysEndsLater { endBody(id, .success(part.offset + part.bytes.count)) }
    }

    /// Whether the end of a body is reported in a later iteration than its last bytes, as the engine's thread may do.
    var saysEndsLater: Bool {
        get { state.withLock { $0.saysEndsLater } }
        set { state.withLock { $0.saysEndsLater = newValue } }
    }

    func attach(_ id: TransferID, socket: Int32) {
        close(socket)
        state.withLock { $0.attached.append(id) }
    }

    /// The bodies that have received a socket.
    var attached: [TransferID] { state.withLock { $0.attached } }

    func makeSource(size: Int?, storesCopy: Bool, memory: Quota?, disk: Quota?) -> BodySourceID {
        state.withLock { state in
            state.last += 1
            let id = BodySourceID(value: state.last)
            state.sources[id] = storesCopy
            (state.memories[id], state.disks[id]) = (memory, disk)
            return id
        }
    }

    func attach(_ source: BodySourceID, socket: Int32) {
        close(socket)
        state.withLock { $0.fedSources.append(source) }
    }

    func release(_ source: BodySourceID) { state.withLock { $0.sources[source] = nil } }

    /// The sources of request bodies that are not released, and whether they keep a copy.
    var sources: [BodySourceID: Bool] { state.withLock { $0.sources } }

    /// Returns the quota of a source, released or not.
    func memory(of source: BodySourceID) -> Quota? { state.withLock { $0.memories[source] } }

    func disk(of source: BodySourceID) -> Quota? { state.withLock { $0.disks[source] } }

    /// The sources that have received a socket, in order.
    var fedSources: [BodySourceID] { state.withLock { $0.fedSources } }

    func forget(_ identity: ConnectionIdentity) {}

    func takeTunnel(_ id: TransferID) -> Int32? { nil }

    func progress(of id: TransferID, completion: @escaping @Sendable (TransferProgress?) -> Void) { completion(nil) }

    /// Ends a body as the engine does.
    func endBody(_ id: TransferID, _ delivery: Delivery) {
        let follower = state.withLock { $0.bodies.removeValue(forKey: id)?.follower }
        follower?(delivery)
    }

    /// The bodies that have not been read to their end.
    var openBodies: [TransferID] { state.withLock { Array($0.bodies.keys) } }

    var figures: TransferStatistics {
        TransferStatistics(engine: "fake", running: openCount, finished: 0, connectionsOpened: 0, connectionsReused: 0)
    }

    /// Answers the oldest open request.
    func respond(_ status: Int, _ headers: HeaderBlock = [], body: String = "") {
        complete(.success(TransferResponse(status: status, headers: headers, body: Array(body.utf8))))
    }

    func challenge(_ realm: ExactText = "r") {
        respond(401, [HeaderField("WWW-Authenticate", "Basic realm=\"\(realm)\"")])
    }

    /// Answers the request with this index in `requests`.
    func complete(_ outcome: Outcome, ofRequest index: Int) {
        let open = state.withLock { $0.open.removeValue(forKey: $0.started[index]) }
        open?.completion(outcome)
    }

    func complete(_ outcome: Outcome) {
        let open = state.withLock { state in
            state.open.keys.min().flatMap { state.open.removeValue(forKey: $0) }
        }
        open?.completion(outcome)
    }
}
