internal import WatchwordCore
internal import WatchwordProtocol

/// What one client holds of the broker, each kind within what its program, and all programs together, may hold.
struct Holdings {
    /// Fetches that are not answered.
    let fetches: Allowance
    /// Response bodies that were not read to their end.
    let bodies: Allowance
    /// Bytes that came in messages and are to be sent on.
    let requests: Allowance
    /// Bytes of responses that are not answered.
    let responses: Allowance
    /// Bytes in temporary files.
    let disk: Allowance
    /// Bytes of messages that are not complete.
    let messages: Allowance
    /// Bytes that the client has not read.
    let replies: Allowance

    init(of holder: Allowance.Holder, _ limits: HoldingLimits, within wider: Holdings? = nil) {
        func allowance(_ limit: KeyPath<HoldingLimits, HoldingLimit>, _ wider: Allowance?) -> Allowance {
            Allowance(limits[keyPath: limit].of(holder), of: holder, within: wider)
        }
        fetches = allowance(\.fetches, wider?.fetches)
        bodies = allowance(\.bodies, wider?.bodies)
        requests = allowance(\.requestBytes, wider?.requests)
        responses = allowance(\.responseBytes, wider?.responses)
        disk = allowance(\.diskBytes, wider?.disk)
        messages = allowance(\.messageBytes, wider?.messages)
        replies = allowance(\.replyBytes, wider?.replies)
    }
}

/// What one connection has of an allowance, where that is known as a whole.
struct Held {
    private var count = 0

    mutating func change(to new: Int, in allowance: Allowance) {
        guard new != count else { return }
        allowance.take(new - count)
        count = new
    }
}

/// What a fetch counts for, until nobody has this any more.
final class FetchHolding {
    private let fetch: Allowance.Share
    private let request: Allowance.Share

    /// - Parameter bytes: of its request that came in messages.
    init(in holdings: Holdings, bytes: Int) {
        fetch = Allowance.Share(of: holdings.fetches)
        request = Allowance.Share(of: holdings.requests)
        fetch.grow(by: 1)
        request.grow(by: bytes)
    }

    func grow(by bytes: Int) { request.grow(by: bytes) }
}

/// The connections of one process, which share what they hold.
final class ClientProgram {
    let tag: ProgramTag
    let holdings: Holdings
    var connectionCount = 0

    init(_ tag: ProgramTag, _ limits: HoldingLimits, within everybody: Holdings) {
        self.tag = tag
        holdings = Holdings(of: .program, limits, within: everybody)
    }
}

extension HoldingLimit {
    fileprivate func of(_ holder: Allowance.Holder) -> Int {
        switch holder {
        case .connection: connection
        case .program: program
        case .everybody: everybody
        }
    }
}
