public import JSONText
internal import WatchwordClient

/// A response whose body is read in parts.
public struct ResponseStream: Sendable {
    public let status: Int
    /// The header fields in the order of the response; a name may occur more than once.
    public let headers: [(name: String, value: String)]
    /// The result of `fetch/run`.
    public let details: JSON
    /// The body. The fetch is cancelled when the last copy of this value is gone before the body was read to its end.
    public let body: Body

    init(_ head: Watchword.Response, _ body: Body) {
        (status, headers, details) = (head.status, head.headers, head.details)
        self.body = body
    }

    /// The parts of a body in their order. A part is read from the broker when it is requested, so a slow reader slows the
    /// transfer down. A body can be read once.
    public struct Body: AsyncSequence, Sendable {
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var inline: [UInt8]?
            fileprivate let rest: UnreadBody?

            public mutating func next() async throws -> [UInt8]? {
                if let rest { return try await rest.next() }
                defer { inline = nil }
                return inline.flatMap { $0.isEmpty ? nil : $0 }
            }
        }

        /// A body inside the reply.
        let inline: [UInt8]?
        /// A body that the broker still receives.
        let rest: UnreadBody?

        public func makeAsyncIterator() -> Iterator { Iterator(inline: inline, rest: rest) }
    }
}

/// A body that the broker still receives, or that was not read to its end.
final class UnreadBody: Sendable {
    private let fetchID: String
    private let client: AsyncWatchword

    init(_ fetchID: String, of client: AsyncWatchword) { (self.fetchID, self.client) = (fetchID, client) }

    deinit { Task { [fetchID, client] in await client.discardBody(of: fetchID) } }

    func next() async throws -> [UInt8]? { try await client.nextPart(of: fetchID) }
}
