internal import Threads
internal import WatchwordClient
internal import WatchwordProtocol

/// A connection to the broker whose messages are received on a thread of its own. The thread ends with this object.
final class AsyncChannel: Sendable {
    typealias Event = Result<IncomingMessage, ClientFailure>

    /// The socket, which this object and the thread share.
    private final class Shared: Sendable {
        let socket: UnixSocket

        init(_ location: SocketLocation) throws(ClientFailure) { socket = try UnixSocket(connectingTo: location) }
    }

    private let shared: Shared
    /// The received messages in their order; a failure is the last one.
    let events: AsyncStream<Event>

    init(connectingTo location: SocketLocation) throws(ClientFailure) {
        let shared = try Shared(location)
        let (events, continuation) = AsyncStream.makeStream(of: Event.self)
        (self.shared, self.events) = (shared, events)
        let isReceiving = OwnedThread.detach {
            var reader = MessageReader()
            do throws(ClientFailure) {
                while true { try reader.receive(from: shared.socket) { continuation.yield(.success($0)) } }
            } catch {
                continuation.yield(.failure(error))
                continuation.finish()
            }
        }
        guard isReceiving else { throw .cannotStart(reason: "no thread can be created for the connection") }
    }

    deinit { close() }

    func send(_ message: OutgoingMessage) throws(ClientFailure) { try shared.socket.send(message) }

    /// Closes the connection, which ends the thread.
    func close() { shared.socket.shutDown() }
}
