internal import WatchwordCore

/// The transfers that libcurl runs for one engine.
struct RunningTransfers {
    private var transfers: [TransferID: CurlTransfer] = [:]
    /// The transfers with a speed limit.
    private var paced: Set<TransferID> = []
    let readyResponses = ReadyResponses()

    subscript(id: TransferID) -> CurlTransfer? { transfers[id] }

    var ids: [TransferID] { Array(transfers.keys) }

    mutating func add(_ transfer: CurlTransfer) {
        transfers[transfer.id] = transfer
        if transfer.request.options.maxBytesPerSecond != nil { paced.insert(transfer.id) }
    }

    mutating func remove(_ id: TransferID) -> CurlTransfer? {
        paced.remove(id)
        return transfers.removeValue(forKey: id)
    }

    /// Removes and returns the transfers whose responses are ready for delivery.
    func takeReadyResponses() -> [CurlTransfer] {
        guard !readyResponses.transfers.isEmpty else { return [] }
        defer { readyResponses.transfers = [] }
        return readyResponses.transfers.filter { transfers[$0.id] != nil }
    }

    /// The transfers paused by their speed limit, each with the time at which it may continue.
    var paused: [(transfer: CurlTransfer, until: ContinuousClock.Instant)] {
        paced.compactMap { id in
            guard let transfer = transfers[id], let end = transfer.timing.pausedUntil else { return nil }
            return (transfer, end)
        }
    }
}
