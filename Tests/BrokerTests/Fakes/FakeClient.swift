import Broker
import JSONText
import Synchronization
import WatchwordProtocol

/// One end of an in-memory connection: what the broker sends is kept, line by line.
final class FakeClient: ClientLink {
    private struct State {
        var bytes: [UInt8] = []
        var isClosed = false
        var waitingBytes = 0
        var taker: (@Sendable (Int32) -> Void)?
    }

    private let state = Mutex(State())

    func send(_ bytes: [UInt8]) { state.withLock { $0.bytes += bytes } }

    /// As though the client had not read.
    var waitingBytes: Int {
        get { state.withLock { $0.waitingBytes } }
        set { state.withLock { $0.waitingBytes = newValue } }
    }

    func abandon() { close() }

    func close() { state.withLock { $0.isClosed = true } }

    func handOver(after bytes: [UInt8], to taker: @escaping @Sendable (Int32) -> Void) {
        send(bytes)
        state.withLock { $0.taker = taker }
    }

    /// Gives `socket` to whoever has taken the connection over. `false` when nobody has.
    func giveSocket(_ socket: Int32) -> Bool {
        let taker = state.withLock { $0.taker }
        taker?(socket)
        return taker != nil
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// All messages since the last call.
    func takeMessages() -> [JSON] {
        let bytes = state.withLock { state in
            defer { state.bytes = [] }
            return state.bytes
        }
        return bytes.split(separator: UInt8(ascii: "\n")).compactMap {
            try? JSON.parse(Array($0), limits: JSONLimits(depth: 64, values: 100_000))
        }
    }
}
