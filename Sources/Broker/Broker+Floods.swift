internal import Logging
internal import WatchwordCore
internal import WatchwordProtocol

/// What one client may hold of the broker, and for how long.
extension Broker {
    /// How often messages that are not complete are looked at.
    private static let senderInterval = Duration.seconds(5)

    /// Looks at when the message that is coming was begun. A byte a second for ever would hold what has come.
    func noteUnfinishedMessage(of connection: ClientConnection) {
        guard connection.unfinishedCount != nil else {
            connection.unfinished = nil
            return
        }
        guard connection.unfinished?.number != connection.messageCount else { return }
        connection.unfinished = UnfinishedMessage(number: connection.messageCount, since: clock.now)
        watchSenders()
    }

    private func watchSenders() {
        guard !isWatchingSenders else { return }
        isWatchingSenders = true
        let clock = clock
        Task {
            try? await clock.sleep(for: Self.senderInterval)
            isWatchingSenders = false
            for connection in connections.values where connection.unfinished != nil { checkSender(connection) }
            if connections.values.contains(where: { $0.unfinished != nil }) { watchSenders() }
        }
    }

    private func checkSender(_ connection: ClientConnection) {
        guard let unfinished = connection.unfinished, let count = connection.unfinishedCount else { return }
        let limit = Limits.messageTime + .seconds(count / Limits.messageBytesPerSecond)
        guard clock.now - unfinished.since > limit else { return }
        connection.unfinished = nil
        log.warning("a client does not finish its message", metadata: ["pid": "\(connection.peer.pid)"])
        connection.breakOff(
            "a message was begun and is not complete after \(limit.components.seconds) seconds, in which \(count) bytes of it came"
        )
    }

    /// - Throws: `busy` when the fetches of the client hold so much that `count` bytes of one more are not to be added.
    func checkRoom(for count: Int, of connection: ClientConnection) throws {
        guard connection.heldRequestBytes + count <= Limits.heldRequestBytes else {
            throw RPCError(
                .busy,
                "The fetches of this connection hold \(connection.heldRequestBytes) bytes of requests; more than \(Limits.heldRequestBytes) are not kept. Wait for replies, or attach the body."
            )
        }
    }

    /// Whether one more question may wait for an answer on behalf of this fetch. If not, the fetch ends.
    func mayAsk(for fetch: RunningFetch) -> Bool {
        guard let owner = fetch.owner, let connection = connections[owner.connection] else { return true }
        let open = connection.fetches.count { id in
            if case .challenged? = fetches[id]?.state { true } else { false }
        }
        guard open >= Limits.openChallenges else { return true }
        let text = "\(open) questions of this connection wait for an answer. Answer some first."
        cancel(fetch, FetchFailure(.busy, text))
        return false
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
