internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// `fetch/progress`, for those who asked for it.
extension Router {
    /// At most so often, and only when there is news.
    private static let progressInterval = Duration.milliseconds(250)

    func reportProgress(of fetch: RunningFetch) {
        guard fetch.params.notify.contains(.progress), let owner = fetch.owner else { return }
        askForProgress(of: fetch.id, for: owner)
    }

    private func askForProgress(of id: FetchID, for owner: RunningFetch.Owner) {
        guard isUnderWay(id, of: owner.connection) else {
            clients[owner.connection]?.progress[id] = nil
            return
        }
        eventually(after: Self.progressInterval) { broker in
            if let transfer = broker.transfer(of: id, owner.connection) {
                let tell = broker.way.callback { $0.tell($1, of: id, to: owner) }
                broker.transfers.progress(of: transfer) { progress in progress.map(tell) }
            }
            broker.askForProgress(of: id, for: owner)
        }
    }

    private func isUnderWay(_ id: FetchID, of connection: ConnectionID) -> Bool {
        fetches[id] != nil || clients[connection]?.bodies[id.description] != nil
    }

    private func transfer(of id: FetchID, _ connection: ConnectionID) -> TransferID? {
        if case .transferring(let transfer)? = fetches[id]?.state { return transfer }
        return clients[connection]?.bodies[id.description]?.transfer
    }

    private func tell(_ progress: TransferProgress, of id: FetchID, to owner: RunningFetch.Owner) {
        guard let connection = clients[owner.connection], isUnderWay(id, of: owner.connection),
            connection.progress[id] != progress
        else { return }
        connection.progress[id] = progress
        connection.notify(
            .fetchProgress,
            [
                "fetchId": .string("\(id)"), "requestId": owner.requestID.json,
                "receivedBytes": .integer(progress.receivedBytes),
                "expectedBytes": progress.announcedBytes.map { .integer($0) } ?? .null,
                "sentBytes": .integer(progress.sentBytes),
            ])
    }
}
