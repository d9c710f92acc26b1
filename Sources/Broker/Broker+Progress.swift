internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// `fetch/progress`, for those who asked for it.
extension Broker {
    /// At most so often, and only when there is news.
    private static let progressInterval = Duration.milliseconds(250)

    func reportProgress(of fetch: RunningFetch) {
        guard fetch.params.notify.contains(.progress), let owner = fetch.owner else { return }
        let (id, clock) = (fetch.id, clock)
        Task {
            while isUnderWay(id, of: owner.connection) {
                try? await clock.sleep(for: Self.progressInterval)
                guard let transfer = transfer(of: id, owner.connection) else { continue }
                transfers.progress(of: transfer) { [self, loop] progress in
                    guard let progress else { return }
                    loop.post { self.assumeIsolated { $0.tell(progress, of: id, to: owner) } }
                }
            }
            connections[owner.connection]?.progress[id] = nil
        }
    }

    private func isUnderWay(_ id: FetchID, of connection: ConnectionID) -> Bool {
        fetches[id] != nil || connections[connection]?.bodies[id.description] != nil
    }

    private func transfer(of id: FetchID, _ connection: ConnectionID) -> TransferID? {
        if case .transferring(let transfer)? = fetches[id]?.state { return transfer }
        return connections[connection]?.bodies[id.description]?.transfer
    }

    private func tell(_ progress: TransferProgress, of id: FetchID, to owner: RunningFetch.Owner) {
        guard let connection = connections[owner.connection], isUnderWay(id, of: owner.connection),
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
