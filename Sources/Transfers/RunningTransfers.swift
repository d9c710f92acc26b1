internal import Glibc
internal import WatchwordCore

/// The transfers that libcurl runs for one engine.
struct RunningTransfers {
    private var transfers: [TransferID: CurlTransfer] = [:]
    /// The transfers with a speed limit.
    private var paced: Set<TransferID> = []
    /// The sockets of tunnels that are not taken yet.
    private var tunnels: [TransferID: Int32] = [:]
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

    /// Stores the socket of a tunnel. It is a duplicate, because libcurl closes its own when the transfer is removed.
    mutating func addTunnel(of transfer: CurlTransfer) {
        let socket = fcntl(transfer.easy.activeSocket, F_DUPFD_CLOEXEC, 0)
        if socket >= 0 { tunnels[transfer.id] = socket }
    }

    mutating func takeTunnel(_ id: TransferID) -> Int32? { tunnels.removeValue(forKey: id) }

    mutating func closeTunnel(_ id: TransferID) {
        if let socket = takeTunnel(id) { close(socket) }
    }

    mutating func closeTunnels() {
        for id in Array(tunnels.keys) { closeTunnel(id) }
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
