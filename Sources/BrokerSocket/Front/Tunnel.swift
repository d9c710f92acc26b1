internal import EventLoop
internal import Glibc

/// Relays bytes between two sockets without looking at them, until both directions have ended. Used on its loop only.
final class Tunnel: ReadinessHandler {
    /// The parts that one event moves, so that other descriptors get their turn. Fewer waits are faster, and small parts stay in the
    /// processor's cache.
    private static let parts = 16

    /// One direction. It buffers at most what one read returns, and nothing while the receiver keeps up.
    private struct Direction: ~Copyable {
        let source: Int32
        let target: Int32
        var output: OutgoingBytes
        var hasEnded = false
        /// Whether the end was passed on.
        var isShut = false

        /// Whether the next bytes can be read.
        var isReading: Bool { !hasEnded && output.count == 0 }

        /// Reads, and sends what it has read, a few times. Returns `false` if the receiver is gone.
        mutating func move(_ buffer: UnsafeMutableRawBufferPointer) -> Bool {
            for _ in 0..<parts where isReading {
                let count = recv(source, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
                if count > 0 {
                    let sent = send(target, buffer.baseAddress, count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
                    guard sent >= 0 || errno == EAGAIN || errno == EINTR else { return false }
                    let rest = UnsafeRawBufferPointer(rebasing: buffer[max(sent, 0)..<count])
                    if !rest.isEmpty { output.append(Array(rest)) }
                } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
                    hasEnded = true
                }
                // Less than a full part: nothing more has arrived.
                if count < buffer.count { break }
            }
            return flush()
        }

        /// Sends buffered bytes and then, once, the end.
        mutating func flush() -> Bool {
            guard output.send(to: target) else { return false }
            if hasEnded, output.count == 0, !isShut {
                isShut = true
                shutdown(target, Int32(SHUT_WR))
            }
            return true
        }
    }

    private let loop: EventLoop
    private let buffer: UnsafeMutableRawBufferPointer
    private let program: Int32
    private let origin: Int32
    private var up: Direction
    private var down: Direction
    private let onEnd: () -> Void

    /// - Parameters:
    ///   - program: the socket of the program, which `onEnd` closes.
    ///   - origin: the socket to the origin; this object takes ownership.
    ///   - early: bytes from the program that were received with its request.
    ///   - greeting: bytes that the program receives first.
    ///   - onEnd: called once, when both directions have ended.
    init(
        on loop: EventLoop, _ buffer: UnsafeMutableRawBufferPointer, program: Int32, origin: Int32, early: [UInt8],
        greeting: consuming OutgoingBytes, onEnd: @escaping () -> Void
    ) {
        (self.loop, self.buffer, self.program, self.origin, self.onEnd) = (loop, buffer, program, origin, onEnd)
        var first = OutgoingBytes()
        first.append(early)
        up = Direction(source: program, target: origin, output: first)
        down = Direction(source: origin, target: program, output: greeting)
    }

    func start() {
        let isOpen = up.flush() && down.flush()
        if isOpen { watch() } else { end() }
    }

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        let isProgram = descriptor == program
        if events.contains(.hungUp) { return drain(isProgram) }
        var isOpen = true
        if events.contains(.readable) { isOpen = isProgram ? up.move(buffer) : down.move(buffer) }
        if isOpen, events.contains(.writable) { isOpen = isProgram ? down.flush() : up.flush() }
        if isOpen && !(up.isShut && down.isShut) { watch() } else { end() }
    }

    /// Passes on the last bytes of a socket whose other end is closed. Nothing can be sent to it any more.
    private func drain(_ isProgram: Bool) {
        for _ in 0..<4 {
            let isOpen = isProgram ? up.move(buffer) : down.move(buffer)
            let (hasEnded, waits) =
                isProgram ? (up.isShut, up.output.count > 0) : (down.isShut, down.output.count > 0)
            if !isOpen || hasEnded { return end() }
            if waits { break }
        }
        // The receiver is slow: the rest is read when it has taken these bytes.
        if isProgram { down.hasEnded = true } else { up.hasEnded = true }
        loop.forget(isProgram ? program : origin)
        let other = isProgram ? origin : program
        loop.watch(other, .writable, Rest(self, isProgram))
    }

    /// Continues to drain a closed socket when the other one can take bytes.
    private final class Rest: ReadinessHandler {
        private let tunnel: Tunnel
        private let isProgram: Bool

        init(_ tunnel: Tunnel, _ isProgram: Bool) { (self.tunnel, self.isProgram) = (tunnel, isProgram) }

        func ready(_ descriptor: Int32, _ events: ReadyEvents) { tunnel.drain(isProgram) }
    }

    private func watch() {
        func events(reads: Bool, writes: Bool) -> ReadyEvents {
            var events: ReadyEvents = reads ? .readable : []
            if writes { events.insert(.writable) }
            return events
        }
        let isWatched =
            loop.watch(program, events(reads: up.isReading, writes: down.output.count > 0), self)
            && loop.watch(origin, events(reads: down.isReading, writes: up.output.count > 0), self)
        if !isWatched { end() }
    }

    /// Ends both directions at once.
    func stop() { end() }

    private func end() {
        guard !hasEnded else { return }
        hasEnded = true
        loop.forget(program)
        loop.forget(origin)
        close(origin)
        onEnd()
    }

    private var hasEnded = false
}
