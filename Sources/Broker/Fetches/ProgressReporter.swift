internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// The desk of `fetch/progress`, for the clients that asked for it. It owns what they were told last.
final class ProgressReporter {
    private let transfers: any TransferPort
    private let clients: ClientRegistry
    private let bodies: BodyDesk
    private unowned let fetches: FetchRouter
    private let way: WayBack<ProgressReporter>
    private var told: [FetchID: TransferProgress] = [:]

    init(_ fetches: FetchRouter, _ bodies: BodyDesk, _ way: WayBack<ProgressReporter>) {
        (transfers, clients, self.bodies) = (fetches.ports.transfers, fetches.clients, bodies)
        (self.fetches, self.way) = (fetches, way)
    }

    /// At most so often, and only when there is news.
    private static let progressInterval = Duration.milliseconds(250)

    func report(on fetch: RunningFetch) {
        guard fetch.params.notify.contains(.progress), let owner = fetch.owner else { return }
        askForProgress(of: fetch.id, for: owner)
    }

    private func askForProgress(of id: FetchID, for owner: RunningFetch.Owner) {
        guard isUnderWay(id, of: owner.connection) else {
            told[id] = nil
            return
        }
        way.eventually(after: Self.progressInterval) { desk in
            if let transfer = desk.fetches[id]?.transfer ?? desk.bodies.transfer(of: id, owner.connection) {
                let tell: @Sendable (TransferProgress) -> Void = desk.way.callback { $0.tell($1, of: id, to: owner) }
                desk.transfers.progress(of: transfer) { progress in progress.map(tell) }
            }
            desk.askForProgress(of: id, for: owner)
        }
    }

    private func isUnderWay(_ id: FetchID, of connection: ConnectionID) -> Bool {
        fetches[id] != nil || bodies.transfer(of: id, connection) != nil
    }

    private func tell(_ progress: TransferProgress, of id: FetchID, to owner: RunningFetch.Owner) {
        guard let connection = clients[owner.connection], isUnderWay(id, of: owner.connection),
            told[id] != progress
        else { return }
        told[id] = progress
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
