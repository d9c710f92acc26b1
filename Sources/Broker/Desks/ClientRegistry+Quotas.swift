internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// Enforces the quotas of clients and the time limit for incomplete messages.
extension ClientRegistry {
    /// The interval at which incomplete messages are checked.
    private static let senderInterval = Duration.seconds(5)

    /// Records when an incomplete message began, so that a slow sender cannot occupy memory forever. If the quota is
    /// exceeded, closes the connection with the most incomplete input.
    func recordIncompleteMessage(of connection: ClientConnection) {
        connection.recordIncompleteBytes()
        if let shortage = connection.quotas.messages.shortage(for: 0) {
            let largestConsumer = largestConsumer(shortage.holder, of: connection, in: \.messages)
            context.log.warning(
                "incomplete messages above quota; closing the connection with the most",
                metadata: ["pid": "\(largestConsumer.peer.pid)"])
            largestConsumer.abortConnection(
                "too much data in incomplete messages for \(shortage.holder) (limit \(shortage.limit) bytes), most of it on this connection"
            )
            largestConsumer.recordIncompleteBytes()
        }
        guard connection.unfinishedCount != nil else {
            connection.backlog.unfinished = nil
            return
        }
        guard connection.backlog.unfinished?.number != connection.messageCount else { return }
        connection.backlog.unfinished = PartialMessage(number: connection.messageCount, since: context.now)
        scheduleSlowSenderCheck()
    }

    private func scheduleSlowSenderCheck() {
        guard !isWatchingSenders else { return }
        isWatchingSenders = true
        reference.eventually(after: Self.senderInterval) { registry in
            registry.isWatchingSenders = false
            for connection in registry.connections.values where connection.backlog.unfinished != nil {
                registry.checkSender(connection)
            }
            if registry.connections.values.contains(where: { $0.backlog.unfinished != nil }) {
                registry.scheduleSlowSenderCheck()
            }
        }
    }

    private func checkSender(_ connection: ClientConnection) {
        guard let unfinished = connection.backlog.unfinished, let count = connection.unfinishedCount else { return }
        let limit = Limits.messageTime + .seconds(count / Limits.messageBytesPerSecond)
        guard context.now - unfinished.since > limit else { return }
        connection.backlog.unfinished = nil
        context.log.warning("incomplete message timed out", metadata: ["pid": "\(connection.peer.pid)"])
        connection.abortConnection(
            "message still incomplete after \(limit.components.seconds) seconds and \(count) bytes"
        )
    }

    /// Checks the quotas for another fetch with `count` bytes of request data.
    /// - Throws: `busy` if there are too many unanswered fetches or too much request data.
    func checkRoom(for count: Int, of connection: ClientConnection) throws(RPCError) {
        if let shortage = connection.quotas.fetches.shortage(for: 1) {
            throw RPCError(
                .busy,
                "too many unanswered fetches for \(shortage.holder) (limit \(shortage.limit)); wait for replies"
            )
        }
        if let shortage = connection.quotas.requests.shortage(for: count) {
            throw RPCError(.busy, shortage.requestText)
        }
    }

    /// Checks the quota for another unread body.
    /// - Throws: `busy` if there are too many.
    func checkRoomForBody(of connection: ClientConnection) throws(RPCError) {
        guard let shortage = connection.quotas.bodies.shortage(for: 1) else { return }
        throw RPCError(
            .busy,
            "too many unread bodies for \(shortage.holder) (limit \(shortage.limit)); read or cancel one first"
        )
    }

    /// Records the number of sent bytes that a client has not read.
    func recordUnread(_ count: Int, of id: ConnectionID) {
        guard let connection = self[id] else { return }
        connection.recordUnread(count)
        checkReplies(of: connection)
    }

    /// If the quota for unread output is exceeded, closes the connection with the most of it.
    func checkReplies(of connection: ClientConnection) {
        guard let shortage = connection.quotas.replies.shortage(for: 0) else { return }
        let largestConsumer = largestConsumer(shortage.holder, of: connection, in: \.replies)
        context.log.warning(
            "unread output above quota; closing the connection with the most",
            metadata: ["bytes": "\(shortage.usage)", "pid": "\(largestConsumer.peer.pid)"])
        largestConsumer.abandon()
    }

    /// Returns the connection that uses most of an exceeded quota, in the program that uses most of it. This need not
    /// be the connection that exceeded the quota.
    private func largestConsumer(
        _ holder: Quota.Holder, of connection: ClientConnection, in kind: KeyPath<ClientQuotas, Quota>
    ) -> ClientConnection {
        guard holder != .connection else { return connection }
        func isLess(_ left: ClientQuotas, _ right: ClientQuotas) -> Bool {
            left[keyPath: kind].usage < right[keyPath: kind].usage
        }
        let largestConsumer = holder == .allPrograms ? programs.values.max { isLess($0.quotas, $1.quotas) } : nil
        let program = largestConsumer ?? connection.program  // guard: greatest-of-all
        let own = connections.values.filter { $0.program === program }
        return own.max { isLess($0.quotas, $1.quotas) } ?? connection
    }

}

/// A message that is still incomplete.
struct PartialMessage {
    /// The number of messages received before it on this connection.
    let number: Int
    let since: Duration
}

extension FetchRunParams {
    /// The number of bytes of request data that are stored until the reply.
    var chargedBytes: Int {
        (body?.count ?? 0) + url.utf8.count + headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
    }
}

extension Quota.QuotaExceeded {
    /// The error message for too much request data.
    var requestText: String {
        "too much request data for \(holder) (\(usage) of \(limit) bytes in use); wait for replies or attach the body"
    }
}
