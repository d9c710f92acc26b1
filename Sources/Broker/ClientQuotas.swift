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
