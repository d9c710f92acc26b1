import Broker
import JSONText
import Synchronization
import WatchwordProtocol

/// One end of an in-memory connection, which records everything that the broker sends.
final class FakeClient: ClientLink, Sendable {
    private struct State {
        var bytes: [UInt8] = []
        var isClosed = false
        var waitingBytes = 0
        var taker: (@Sendable (Int32) -> Void)?
    }

    private let state = Mutex(State())

    func send(_ bytes: [UInt8]) { state.withLock { $0.bytes += bytes } }

    /// The number of bytes that the client has not read. Tests set it.
    var waitingBytes: Int {
        get { state.withLock { $0.waitingBytes } }
        set { state.withLock { $0.waitingBytes = newValue } }
    }

    func abandon() { close() }

    func close() { state.withLock { $0.isClosed = true } }

    func detach(after bytes: [UInt8], to taker: @escaping @Sendable (Int32) -> Void) {
        send(bytes)
        state.withLock { $0.taker = taker }
    }

    /// Passes `socket` to the handler that has taken the connection over; returns `false` if there is none.
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
