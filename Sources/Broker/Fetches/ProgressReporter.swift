internal import JSONText
internal import WatchwordCore
internal import WatchwordProtocol

/// Sends `fetch/progress` to the clients that have requested it. Owns the last reported progress of each fetch.
final class ProgressReporter {
    private let transfers: any TransferPort
    private let clients: ClientRegistry
    private let bodies: BodyDesk
    private unowned let fetches: FetchRouter
    private let reference: DeskReference<ProgressReporter>
    private var lastSent: [FetchID: TransferProgress] = [:]

    init(_ fetches: FetchRouter, _ bodies: BodyDesk, _ reference: DeskReference<ProgressReporter>) {
        (transfers, clients, self.bodies) = (fetches.ports.transfers, fetches.clients, bodies)
        (self.fetches, self.reference) = (fetches, reference)
    }

    /// The interval at which the progress of a fetch is reported. Unchanged progress is not reported.
    private static let progressInterval = Duration.milliseconds(250)

    func report(on fetch: RunningFetch) {
        guard fetch.request.notify.contains(.progress), let owner = fetch.owner else { return }
        askForProgress(of: fetch.id, for: owner)
    }

    private func askForProgress(of id: FetchID, for owner: RunningFetch.Owner) {
        guard isUnderWay(id, of: owner.connection) else {
            lastSent[id] = nil
            return
        }
        reference.eventually(after: Self.progressInterval) { desk in
            if let transfer = desk.fetches[id]?.transfer ?? desk.bodies.transfer(of: id, owner.connection) {
                let send: @Sendable (TransferProgress) -> Void = desk.reference.callback {
                    $0.send($1, of: id, to: owner)
                }
                desk.transfers.progress(of: transfer) { progress in progress.map(send) }
            }
            desk.askForProgress(of: id, for: owner)
        }
    }

    private func isUnderWay(_ id: FetchID, of connection: ConnectionID) -> Bool {
        fetches[id] != nil || bodies.transfer(of: id, connection) != nil
    }

    private func send(_ progress: TransferProgress, of id: FetchID, to owner: RunningFetch.Owner) {
        guard let connection = clients[owner.connection], isUnderWay(id, of: owner.connection),
            lastSent[id] != progress
        else { return }
        lastSent[id] = progress
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
