internal import Glibc
internal import WatchwordCore
internal import WatchwordProtocol

/// The transfers that libcurl runs for one engine.
struct RunningTransfers {
    private var transfers: [TransferID: CurlTransfer] = [:]
    /// The transfers with a speed limit.
    private var paced: Set<TransferID> = []
    /// The sockets of tunnels that are not taken yet.
    private var tunnels: [TransferID: Int32] = [:]
    /// The tunnels through https proxies.
    private var relays: [TransferID: TunnelRelay] = [:]
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

    /// Keeps the transfer of a tunnel through an https proxy, which stays in its pool until the relay ends.
    mutating func add(_ relay: TunnelRelay, _ id: TransferID) { relays[id] = relay }

    mutating func removeRelay(_ id: TransferID) { relays[id] = nil }

    /// Removes and returns the socket of a tunnel. The caller closes it.
    mutating func takeSocket(_ id: TransferID) -> Int32? { tunnels.removeValue(forKey: id) }

    mutating func closeSocket(_ id: TransferID) {
        if let socket = takeSocket(id) { close(socket) }
    }

    /// Returns the relay of a tunnel. It removes itself when it ends, so it must not be called from a method of this value.
    func relay(_ id: TransferID) -> TunnelRelay? { relays[id] }

    /// The transfers whose tunnels are open here.
    var tunnelIDs: [TransferID] { Array(tunnels.keys) + Array(relays.keys) }

    /// Removes and returns the transfers whose responses are ready for delivery.
    func takeReadyResponses() -> [CurlTransfer] {
        guard !readyResponses.transfers.isEmpty else { return [] }
        defer { readyResponses.transfers = [] }
        return readyResponses.transfers.filter { transfers[$0.id] != nil }
    }

    /// Removes and returns the transfers that have received a challenge or a redirect.
    mutating func takeIntermediate() -> [CurlTransfer] {
        guard !readyResponses.intermediate.isEmpty else { return [] }
        defer { readyResponses.intermediate = [] }
        return readyResponses.intermediate
    }

    /// Removes and returns what has happened in transfers before their responses.
    func takeEvents() -> [(transfer: CurlTransfer, event: TransferEvent)] {
        guard !readyResponses.events.isEmpty else { return [] }
        defer { readyResponses.events = [] }
        return readyResponses.events.filter { transfers[$0.transfer.id] != nil }
    }

    /// Returns the transfers whose body is awaited.
    mutating func awaited() -> [CurlTransfer] {
        guard !readyResponses.begun.isEmpty else { return [] }
        readyResponses.begun.removeAll { transfers[$0.id] == nil || $0.body.flow != nil }
        return readyResponses.begun
    }

    /// Removes and returns the transfers that have ended after 101, although libcurl continues to send.
    func takeEnded() -> [CurlTransfer] {
        guard !readyResponses.ended.isEmpty else { return [] }
        defer { readyResponses.ended = [] }
        return readyResponses.ended
    }

    /// The transfers paused by their speed limit, each with the time at which it may continue.
    var paused: [(transfer: CurlTransfer, until: ContinuousClock.Instant)] {
        paced.compactMap { id in
            guard let transfer = transfers[id], let end = transfer.timing.pausedUntil else { return nil }
            return (transfer, end)
        }
    }
}

/// The transfers whose responses are ready for delivery, or have begun, or have ended after 101. Filled by the callbacks.
final class ReadyResponses {
    var transfers: [CurlTransfer] = []
    /// The transfers with a challenge or a redirect, whose body may be missing yet.
    var intermediate: [CurlTransfer] = []
    var ended: [CurlTransfer] = []
    /// Those whose body is awaited.
    var begun: [CurlTransfer] = []
    var events: [(transfer: CurlTransfer, event: TransferEvent)] = []
}
