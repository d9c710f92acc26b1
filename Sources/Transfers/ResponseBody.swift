internal import WatchwordCore

/// The body of one response: how much of it has been received, and where it is stored.
struct ResponseBody {
    /// The bytes, as long as the body is in memory.
    private(set) var bytes: [UInt8] = []
    /// The usage of `bytes` in the quota of the client.
    private(set) var share: Quota.Share?
    /// The bytes that have been stored or delivered.
    var count = 0
    /// Delivers the body while it is received.
    private(set) var flow: BodyFlow?
    /// Stores a large body of a response that has to be complete when it is delivered.
    private(set) var store: BodyStore?
    /// Whether the response was delivered; `flow` delivers its body.
    var isDelivered = false
    let proofs: ServerProofs

    init(_ job: TransferJob, _ login: NegotiateLogin?) {
        proofs = ServerProofs(job.request, login)
        share = job.quotas.memory.map { Quota.Share(of: $0) }
    }

    /// The number of bytes in memory above which the body moves to a flow or a store; `nil` for no limit.
    static func limit(for delivery: BodyDelivery, isFinal: Bool) -> Int? {
        switch delivery {
        case .whole: nil
        case .beyond(let bytes): isFinal ? bytes : max(bytes, EngineLimits.bodyBufferBytes)
        case .fromHeader: EngineLimits.bodyBufferBytes
        }
    }

    var isInMemory: Bool { flow == nil && store == nil }

    /// Moves the received bytes to a flow, which delivers the body while it is received.
    mutating func startFlow(_ quota: Quota?) {
        flow = BodyFlow(start: bytes)
        drop(quota)
    }

    /// Moves the received bytes to a store.
    mutating func startStore(_ quotas: ResponseQuotas, inMemory: Bool) {
        store = BodyStore(start: bytes, inMemory: inMemory, disk: quotas.disk)
        drop(quotas.memory)
    }

    private mutating func drop(_ quota: Quota?) {
        bytes = []
        share = quota.map { Quota.Share(of: $0) }
    }

    mutating func append(_ received: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: received)
        share?.grow(by: received.count)
    }
}
