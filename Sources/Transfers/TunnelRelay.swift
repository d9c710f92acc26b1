internal import CCurl
internal import CPlatform
internal import EventLoop
internal import Glibc
internal import WatchwordCore

/// Relays the bytes of a tunnel through an https proxy between a socket and libcurl, which encrypts them for the proxy. Used on the
/// engine's loop only.
///
/// TLS has no end of one direction that a proxy would pass on: when the program has sent all, the tunnel stays open for the other
/// direction.
final class TunnelRelay: ReadinessHandler {
    /// The largest part that is moved at once: that of a TLS record.
    private static let partBytes = 16 << 10
    /// The parts that are moved before other descriptors get their turn.
    private static let parts = 16

    private let transfer: CurlTransfer
    private let loop: EventLoop
    private let onEnd: (CurlTransfer) -> Void
    private let encrypted: Int32
    private var socket: Int32
    /// The other end of `socket`, until it is taken.
    private var other: Int32?
    private var up: [UInt8] = []
    private var down: [UInt8] = []
    private var hasProgramEnded = false

    /// - Parameter onEnd: called once; the handle of `transfer` must exist until then.
    /// - Returns: `nil` if there are no descriptors.
    init?(_ transfer: CurlTransfer, on loop: EventLoop, onEnd: @escaping (CurlTransfer) -> Void) {
        var pair: [Int32] = [-1, -1]
        encrypted = transfer.easy.activeSocket
        guard encrypted >= 0, watchword_socket_pair(&pair) == 0 else { return nil }
        (self.transfer, self.loop, self.onEnd) = (transfer, loop, onEnd)
        (socket, other) = (pair[0], pair[1])
    }

    /// Returns the descriptor of the tunnel, and begins to relay.
    func start() -> Int32? {
        guard let taken = other.take() else { return nil }
        watch()
        return taken
    }

    func ready(_ descriptor: Int32, _ events: ReadyEvents) {
        let isOpen = moveUp() && moveDown()
        // The program is gone once the other end is closed.
        if !isOpen || descriptor == socket && events.contains(.hungUp) { return end() }
        watch()
    }

    /// Returns `false` if the proxy is gone.
    private func moveUp() -> Bool {
        for _ in 0..<Self.parts {
            if up.isEmpty {
                guard !hasProgramEnded else { return true }
                up = [UInt8](unsafeUninitializedCapacity: Self.partBytes) { buffer, count in
                    let received = recv(socket, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
                    hasProgramEnded = received == 0 || received < 0 && errno != EAGAIN && errno != EINTR
                    count = max(received, 0)
                }
                if up.isEmpty { return true }
            }
            var sent = 0
            let code = curl_easy_send(transfer.easy.pointer, up, up.count, &sent)
            up.removeFirst(sent)
            if code == CURLE_AGAIN { return true }
            guard code == CURLE_OK else { return false }
        }
        return true
    }

    /// Returns `false` if one of both ends is gone, after everything was passed on.
    private func moveDown() -> Bool {
        for _ in 0..<Self.parts {
            if down.isEmpty {
                var code = CURLE_OK
                down = [UInt8](unsafeUninitializedCapacity: Self.partBytes) { buffer, count in
                    code = curl_easy_recv(transfer.easy.pointer, buffer.baseAddress, buffer.count, &count)
                    if code != CURLE_OK { count = 0 }
                }
                if code == CURLE_AGAIN { return true }
                guard code == CURLE_OK, !down.isEmpty else { return false }
            }
            let sent = send(socket, down, down.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
            guard sent >= 0 || errno == EAGAIN || errno == EINTR else { return false }
            down.removeFirst(max(sent, 0))
            if !down.isEmpty { return true }
        }
        // OpenSSL may hold more, which makes no descriptor readable.
        loop.soon { [weak self] in self?.resume() }
        return true
    }

    private func resume() {
        if socket >= 0 { ready(encrypted, []) }
    }

    private func watch() {
        var (ours, theirs): (ReadyEvents, ReadyEvents) = ([], [])
        if up.isEmpty && !hasProgramEnded { ours.insert(.readable) }
        if !down.isEmpty { ours.insert(.writable) } else { theirs.insert(.readable) }
        if !up.isEmpty { theirs.insert(.writable) }
        if !loop.watch(socket, ours, self) || !loop.watch(encrypted, theirs, self) { end() }
    }

    /// Ends both directions.
    func end() {
        guard socket >= 0 else { return }
        loop.forget(socket)
        loop.forget(encrypted)
        close(socket)
        socket = -1
        if let other = other.take() { close(other) }
        onEnd(transfer)
    }
}
