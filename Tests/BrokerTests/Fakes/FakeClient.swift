import Broker
import JSONText
import Synchronization
import WatchwordProtocol

/// One end of an in-memory connection: what the broker sends is kept, line by line.
final class FakeClient: ClientLink {
    private struct State {
        var bytes: [UInt8] = []
        var isClosed = false
    }

    private let state = Mutex(State())

    func send(_ bytes: [UInt8]) { state.withLock { $0.bytes += bytes } }

    func close() { state.withLock { $0.isClosed = true } }

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
