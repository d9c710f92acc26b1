internal import CPlatform
internal import EventLoop
internal import Glibc

/// The body of a request that is passed on while it is received, through a pair of connected sockets. Used on its loop
/// only.
final class FrontUpload: ReadinessHandler {
    /// The number of unsent bytes above which the program has to wait.
    private static let highWaterMark = 256 << 10

    private let loop: EventLoop
    private let onRoom: () -> Void
    private var descriptor: Int32
    private var output = OutgoingBytes()
    /// Whether the body was received completely.
    private var isComplete = false
    /// The other end, until it is taken.
    private var reader: Int32?

    /// - Parameter onRoom: called when more bytes can be written.
    /// - Returns: `nil` if there are no descriptors.
    init?(on loop: EventLoop, onRoom: @escaping () -> Void) {
        var pair: [Int32] = [-1, -1]
        guard watchword_socket_pair(&pair) == 0 else { return nil }
        (self.loop, self.onRoom, descriptor, reader) = (loop, onRoom, pair[0], pair[1])
    }

    deinit { close() }

    func takeReader() -> Int32? { reader.take() }

    var hasRoom: Bool { output.count < Self.highWaterMark }

    func write(_ bytes: [UInt8]) {
        output.append(bytes)
        flush()
    }

    /// Marks the end of the body. The socket stays open: closing it would mean that the body is cut off.
    func finish() {
        isComplete = true
        flush()
    }

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        let hadRoom = hasRoom
        flush()
        if !hadRoom && hasRoom { onRoom() }
    }

    private func flush() {
        guard descriptor >= 0 else { return output.drop() }
        // The fetch needs no more of the body once its reader is closed.
        guard output.send(to: descriptor) else {
            output.drop()
            return close()
        }
        if output.count > 0 {
            loop.watch(descriptor, .writable, self)
        } else {
            loop.forget(descriptor)
            if isComplete { shutdown(descriptor, Int32(SHUT_WR)) }
        }
    }

    func close() {
        if let reader = reader.take() { Glibc.close(reader) }
        guard descriptor >= 0 else { return }
        loop.forget(descriptor)
        Glibc.close(descriptor)
        descriptor = -1
    }
}
