internal import CPlatform
internal import JSONText
package import WatchwordProtocol

/// Sends and receives the messages of one connection to the broker.
final class MessageChannel {
    private let socket: UnixSocket
    private var reader = MessageReader()
    /// The received messages that have not been taken, oldest first.
    private(set) var received: [IncomingMessage] = []

    init(connectingTo location: SocketLocation) throws(ClientFailure) {
        socket = try UnixSocket(connectingTo: location)
    }

    /// Becomes readable when the broker has sent a message.
    var descriptor: Int32 { socket.descriptor }

    func takeFirst() -> IncomingMessage? { received.isEmpty ? nil : received.removeFirst() }

    func takeAll() -> [IncomingMessage] {
        defer { received = [] }
        return received
    }

    /// Puts messages back, before the messages that were received since they were taken.
    func putBack(_ messages: [IncomingMessage]) { received = messages + received }

    /// Reads the available bytes, and decodes their messages. Blocks if there are none.
    func receive() throws(ClientFailure) { try reader.receive(from: socket) { received.append($0) } }

    func send(_ message: OutgoingMessage) throws(ClientFailure) { try socket.send(message) }
}

/// Decodes the messages that one connection receives.
package struct MessageReader: ~Copyable {
    private var decoder = FrameDecoder()

    package init() {}

    /// Waits for bytes, and passes the messages that they complete to `take`.
    package mutating func receive(
        from socket: borrowing UnixSocket, _ take: (IncomingMessage) -> Void
    ) throws(ClientFailure) {
        var problem: ClientFailure?
        try socket.receive { bytes throws(ClientFailure) in
            do throws(FramingFailure) {
                try decoder.feed(bytes) { event in
                    guard case .message(let text) = event else {
                        problem = .protocolViolation("message too large")
                        return
                    }
                    let limits = JSONLimits(depth: Limits.messageDepth, values: Limits.messageValues)
                    do throws(JSONFailure) {
                        take(IncomingMessage(try JSON.parse(text, limits: limits)))
                    } catch {
                        problem = .protocolViolation("\(error)")
                    }
                }
            } catch {
                throw .protocolViolation("\(error)")
            }
        }
        if let problem { throw problem }
    }
}

extension UnixSocket {
    /// Sends a message. It may contain a password, so it is assembled in memory that is wiped.
    package func send(_ message: OutgoingMessage) throws(ClientFailure) {
        let count = message.serializedCount
        let line = Secret(capacity: count + 1) { destination in
            message.write(UnsafeMutableRawBufferPointer(rebasing: destination[..<count]))
            destination[count] = UInt8(ascii: "\n")
            return count + 1
        }
        try line.withUnsafeBytes { bytes throws(ClientFailure) in try send(bytes) }
    }
}
