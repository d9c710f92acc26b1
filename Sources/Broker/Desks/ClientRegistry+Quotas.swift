internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// What one client may hold of the broker, and for how long.
extension ClientRegistry {
    /// How often messages that are not complete are looked at.
    private static let senderInterval = Duration.seconds(5)

    /// Looks at when the message that is coming was begun: a byte a second for ever would hold what has come. And at what such
    /// messages hold together.
    func noteUnfinishedMessage(of connection: ClientConnection) {
        connection.noteUnfinishedBytes()
        if let shortage = connection.holdings.messages.shortage(for: 0) {
            let greatest = greatest(shortage.holder, of: connection, in: \.messages)
            context.log.warning("unfinished messages hold too much", metadata: ["pid": "\(greatest.peer.pid)"])
            greatest.breakOff(
                "\(shortage.holder) may hold \(shortage.limit) bytes of messages that are not complete, and this connection has most of them"
            )
            greatest.noteUnfinishedBytes()
        }
        guard connection.unfinishedCount != nil else {
            connection.backlog.unfinished = nil
            return
        }
        guard connection.backlog.unfinished?.number != connection.messageCount else { return }
        connection.backlog.unfinished = UnfinishedMessage(number: connection.messageCount, since: context.now)
        watchSenders()
    }

    private func watchSenders() {
        guard !isWatchingSenders else { return }
        isWatchingSenders = true
        way.eventually(after: Self.senderInterval) { registry in
            registry.isWatchingSenders = false
            for connection in registry.connections.values where connection.backlog.unfinished != nil {
                registry.checkSender(connection)
            }
            if registry.connections.values.contains(where: { $0.backlog.unfinished != nil }) { registry.watchSenders() }
        }
    }

    private func checkSender(_ connection: ClientConnection) {
        guard let unfinished = connection.backlog.unfinished, let count = connection.unfinishedCount else { return }
        let limit = Limits.messageTime + .seconds(count / Limits.messageBytesPerSecond)
        guard context.now - unfinished.since > limit else { return }
        connection.backlog.unfinished = nil
        context.log.warning("a client does not finish its message", metadata: ["pid": "\(connection.peer.pid)"])
        connection.breakOff(
            "a message was begun and is not complete after \(limit.components.seconds) seconds, in which \(count) bytes of it came"
        )
    }

    /// - Throws: `busy` when there are so many fetches, or they hold so much, that one more with `count` bytes is not to be
    ///   added.
    func checkRoom(for count: Int, of connection: ClientConnection) throws(RPCError) {
        if let shortage = connection.holdings.fetches.shortage(for: 1) {
            throw RPCError(
                .busy,
                "Of \(shortage.holder) \(shortage.heldCount) fetches are not answered; more than \(shortage.limit) are not taken. Wait for replies."
            )
        }
        if let shortage = connection.holdings.requests.shortage(for: count) {
            throw RPCError(.busy, shortage.requestText)
        }
    }

    /// - Throws: `busy` when there are so many bodies to read that one more is not to be added.
    func checkRoomForBody(of connection: ClientConnection) throws(RPCError) {
        guard let shortage = connection.holdings.bodies.shortage(for: 1) else { return }
        throw RPCError(
            .busy,
            "Of \(shortage.holder) \(shortage.heldCount) bodies are to be read; more than \(shortage.limit) are not kept. Read some to their end first."
        )
    }

    /// So many bytes wait for this client to read them.
    func noteUnread(_ count: Int, of id: ConnectionID) {
        guard let connection = self[id] else { return }
        connection.noteUnread(count)
        checkReplies(of: connection)
    }

    /// Whether what was not read is too much by now.
    func checkReplies(of connection: ClientConnection) {
        guard let shortage = connection.holdings.replies.shortage(for: 0) else { return }
        let greatest = greatest(shortage.holder, of: connection, in: \.replies)
        context.log.warning(
            "what was not read is too much",
            metadata: ["bytes": "\(shortage.heldCount)", "pid": "\(greatest.peer.pid)"])
        greatest.abandon()
    }

    /// Of those who share what is short, the one that has most of it, in the program that has most of it: not the one that comes
    /// when others have taken it all, by however many connections.
    private func greatest(
        _ holder: Allowance.Holder, of connection: ClientConnection, in kind: KeyPath<Holdings, Allowance>
    ) -> ClientConnection {
        guard holder != .connection else { return connection }
        func isLess(_ left: Holdings, _ right: Holdings) -> Bool {
            left[keyPath: kind].heldCount < right[keyPath: kind].heldCount
        }
        let greatest = holder == .everybody ? programs.values.max { isLess($0.holdings, $1.holdings) } : nil
        let program = greatest ?? connection.program
        let own = connections.values.filter { $0.program === program }
        return own.max { isLess($0.holdings, $1.holdings) } ?? connection
    }

}

/// A message of which not all has come.
struct UnfinishedMessage {
    /// How many came before it.
    let number: Int
    let since: Duration
}

extension FetchRunParams {
    /// What of it is kept until the reply.
    var heldBytes: Int {
        (body?.count ?? 0) + url.utf8.count + headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
    }
}

extension Allowance.Shortage {
    /// That bytes of requests are not taken.
    var requestText: String {
        "Of \(holder) fetches hold \(heldCount) bytes of requests; more than \(limit) are not kept. Wait for replies, or attach the body."
    }
}
