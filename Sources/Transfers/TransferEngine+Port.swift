public import EventLoop
public import WatchwordCore

/// The engine as the broker's transfer port. Every call must be made on the engine's loop; `value` checks that.
extension LoopBound: TransferPort where Value == TransferEngine {
    public func start(
        _ request: SharedRequest, _ quotas: ResponseQuotas, report: @escaping TransferPort.Report,
        completion: @escaping @Sendable (TransferPort.Outcome) -> Void
    ) -> TransferID { value.start(request, quotas, report: report, completion: completion) }

    public func cancel(_ id: TransferID) { value.cancel(id) }

    public func follow(_ id: TransferID, completion: @escaping @Sendable (TransferPort.Delivery) -> Void) {
        value.follow(id, completion: completion)
    }

    public func read(
        _ id: TransferID, maxBytes: Int, completion: @escaping @Sendable (Result<BodyPart, TransferFailure>) -> Void
    ) { value.read(id, maxBytes: maxBytes, completion: completion) }

    public func attach(_ id: TransferID, socket: Int32) { value.attach(id, socket: socket) }

    public func makeSource(size: Int?, storesCopy: Bool, memory: Quota?, disk: Quota?) -> BodySourceID {
        value.makeSource(size: size, storesCopy: storesCopy, memory: memory, disk: disk)
    }

    public func attach(_ source: BodySourceID, socket: Int32) { value.attach(source, socket: socket) }

    public func release(_ source: BodySourceID) { value.release(source) }

    public func open(_ body: [UInt8]) -> TransferID { value.open(body) }

    public func takeTunnel(_ id: TransferID) -> Int32? { value.takeTunnel(id) }

    public func progress(of id: TransferID, completion: @escaping @Sendable (TransferProgress?) -> Void) {
        value.progress(of: id, completion: completion)
    }

    public func forget(_ identity: ConnectionIdentity) { value.forget(identity) }

    public var figures: TransferStatistics { value.figures }
}
