internal import CPlatform
public import Glibc
internal import JSONText
public import WatchwordProtocol

/// A second connection to the broker, which carries the bytes of one body (`fetch/attach`).
///
/// The descriptor does not block; the caller reads or writes it when it is ready. It is closed with this object.
public final class AttachedStream {
    /// The limit for the reply to `fetch/attach` in bytes; the reply is `{}` or an error.
    private static let longestReply = 64 << 10
    /// The time limit for the reply, which the broker sends at once.
    private static let maxWait: Duration = .seconds(30)

    private let socket: UnixSocket
    public var descriptor: Int32 { socket.descriptor }

    /// Connects, and waits for the reply.
    /// - Throws: `interrupted` if `interruptDescriptor` is or becomes readable; the signal is then read from it.
    public init(
        _ location: SocketLocation, token: String, side: FetchAttach.Side, interruptDescriptor: Int32 = -1
    ) throws(ClientFailure) {
        socket = try UnixSocket(connectingTo: location)
        let params = FetchAttach(token: token, side: side).json
        let message = OutgoingMessage.request(
            id: .integer(1), method: FetchAttach.name, params: params)
        let line = message.serialized(terminator: "\n")
        try socket.send(line)
        let reply = try Self.line(from: socket.descriptor, unless: interruptDescriptor)
        let limits = JSONLimits(depth: Limits.messageDepth, values: Limits.messageValues)
        guard let json = try? JSON.parse(reply, limits: limits) else {
            throw .protocolViolation("the reply to fetch/attach is not valid JSON")
        }
        switch IncomingMessage(json) {
        case .result: break
        case .error(_, let error): throw .refused(error)
        default: throw .protocolViolation("no reply to fetch/attach")
        }
        let flags = fcntl(socket.descriptor, F_GETFL)
        guard fcntl(socket.descriptor, F_SETFL, flags | O_NONBLOCK) == 0 else { throw .connectionLost }
    }

    /// Marks the body as complete by shutting down the writing side.
    public func finishWriting() { shutdown(socket.descriptor, Int32(SHUT_WR)) }

    /// Reads exactly one line; the bytes after it belong to the body.
    private static func line(from descriptor: Int32, unless interrupt: Int32) throws(ClientFailure) -> [UInt8] {
        let end = ContinuousClock.now + maxWait
        var line: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while line.count < longestReply {
            try wait(for: descriptor, unless: interrupt, until: end)
            let seen = recv(descriptor, &buffer, buffer.count, Int32(MSG_PEEK))
            if seen < 0 && errno == EINTR { continue }
            guard seen > 0 else { throw .connectionLost }
            let newline = buffer[..<seen].firstIndex(of: UInt8(ascii: "\n"))
            let count = recv(descriptor, &buffer, newline.map { $0 + 1 } ?? seen, 0)
            guard count > 0 else { throw .connectionLost }
            line += buffer[..<count]
            if newline != nil { return line }
        }
        throw .protocolViolation("the reply to fetch/attach is longer than \(longestReply) bytes")
    }

    private static func wait(
        for descriptor: Int32, unless interrupt: Int32, until end: ContinuousClock.Instant
    ) throws(ClientFailure) {
        while true {
            var entries = [descriptor, interrupt].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            let rest = max(.zero, end - .now).wholeMilliseconds
            let count = poll(&entries, UInt(entries.count), Int32(clamping: rest))
            if count < 0 && errno == EINTR { continue }
            if entries[1].revents != 0 { throw .interrupted(signal: max(1, watchword_read_interrupt(interrupt))) }
            if count == 0 { throw .silent }
            return
        }
    }
}

/// A descriptor that is polled while waiting for the broker, and the action to run when it is ready.
public struct Watch {
    public let descriptor: Int32
    /// Whether to wait until the descriptor is writable, not readable.
    public let isForWriting: Bool
    public let act: () -> Void

    public init(_ descriptor: Int32, isForWriting: Bool = false, act: @escaping () -> Void) {
        self.descriptor = descriptor
        self.isForWriting = isForWriting
        self.act = act
    }

    /// The entry for poll(2).
    public var entry: pollfd { pollfd(fd: descriptor, events: Int16(isForWriting ? POLLOUT : POLLIN), revents: 0) }
}
