internal import WatchwordCore
internal import WatchwordProtocol

/// The quotas of a connection, of a program or of all clients. Usage by a connection also counts against the quotas of
/// its program and of all clients.
struct ClientQuotas {
    /// Unanswered fetches.
    let fetches: Quota
    /// Response bodies not yet read to their end.
    let bodies: Quota
    /// Bytes of request data that were received in messages.
    let requests: Quota
    /// Bytes of response data of unanswered fetches.
    let responses: Quota
    /// Bytes in temporary files.
    let disk: Quota
    /// Bytes of incomplete messages.
    let messages: Quota
    /// Bytes of output that the client has not read.
    let replies: Quota

    init(of holder: Quota.Holder, _ limits: QuotaLimits, within wider: ClientQuotas? = nil) {
        func quota(_ limit: KeyPath<QuotaLimits, QuotaLimit>, _ wider: Quota?) -> Quota {
            Quota(limits[keyPath: limit].of(holder), of: holder, within: wider)
        }
        fetches = quota(\.fetches, wider?.fetches)
        bodies = quota(\.bodies, wider?.bodies)
        requests = quota(\.requestBytes, wider?.requests)
        responses = quota(\.responseBytes, wider?.responses)
        disk = quota(\.diskBytes, wider?.disk)
        messages = quota(\.messageBytes, wider?.messages)
        replies = quota(\.replyBytes, wider?.replies)
    }
}

/// The usage of a quota by one connection, changed by setting a new total.
struct QuotaUsage {
    private var count = 0

    mutating func change(to new: Int, in quota: Quota) {
        guard new != count else { return }
        quota.take(new - count)
        count = new
    }
}

/// The quota usage of a fetch, released with the last reference to this object.
final class FetchUsage {
    private let fetch: Quota.Share
    private let request: Quota.Share

    /// - Parameter bytes: the size of the request data that was received in messages.
    init(in quotas: ClientQuotas, bytes: Int) {
        fetch = Quota.Share(of: quotas.fetches)
        request = Quota.Share(of: quotas.requests)
        fetch.grow(by: 1)
        request.grow(by: bytes)
    }

    func grow(by bytes: Int) { request.grow(by: bytes) }
}

/// A client process. Its connections share quotas.
final class ClientProgram {
    let tag: ProgramTag
    let quotas: ClientQuotas
    var connectionCount = 0

    init(_ tag: ProgramTag, _ limits: QuotaLimits, within allPrograms: ClientQuotas) {
        self.tag = tag
        quotas = ClientQuotas(of: .program, limits, within: allPrograms)
    }
}

extension QuotaLimit {
    fileprivate func of(_ holder: Quota.Holder) -> Int {
        switch holder {
        case .connection: connection
        case .program: program
        case .allPrograms: allPrograms
        }
    }
}

/// The limits of one quota: for a connection, for all connections of a process, and for all clients.
public struct QuotaLimit: Sendable {
    public var connection: Int
    public var program: Int
    public var allPrograms: Int
}

/// The quotas of clients, so that one program cannot fill the memory or the disk. Sizes are in bytes. Each limit is
/// covered by a test.
public struct QuotaLimits: Sendable {
    /// Unanswered fetches. One connection is limited by its requests in flight.
    public var fetches = QuotaLimit(connection: .max, program: 2048, allPrograms: 8192)
    /// Response bodies not yet read to their end, whose servers may have to wait. Each body buffers at most 1 MiB, or
    /// counts against `responseBytes`.
    public var bodies = QuotaLimit(connection: Limits.openBodies, program: 256, allPrograms: 1024)
    /// Request data of unanswered fetches that was received in messages.
    public var requestBytes = QuotaLimit(connection: 32 << 20, program: 64 << 20, allPrograms: 256 << 20)
    /// Response data of unanswered fetches. Above the limit, bodies are returned as handles, and reading from the
    /// server pauses.
    public var responseBytes = QuotaLimit(connection: 32 << 20, program: 64 << 20, allPrograms: 256 << 20)
    /// Temporary files: large bodies of responses with a challenge, until it is answered, and copies of request bodies.
    public var diskBytes = QuotaLimit(connection: 256 << 20, program: 512 << 20, allPrograms: 2 << 30)
    /// Incomplete messages. One connection is limited by the framing, which skips the rest of a message that is too
    /// large.
    public var messageBytes = QuotaLimit(connection: .max, program: 64 << 20, allPrograms: 256 << 20)
    /// Output that clients have not read.
    public var replyBytes = QuotaLimit(
        connection: Limits.outgoingQueueBytes, program: 64 << 20, allPrograms: 256 << 20)

    public init() {}
}
