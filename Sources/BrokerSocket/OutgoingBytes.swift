internal import Glibc

/// The output queue of a socket. Small pieces are merged, so that not every reply needs an allocation; large pieces are
/// not copied.
struct OutgoingBytes: ~Copyable {
    private static let smallBytes = 4096
    private static let collectedBytes = 64 << 10

    private var pieces: [[UInt8]] = []
    /// The index of the first piece that is not completely sent.
    private var first = 0
    /// The number of bytes of that piece that are sent.
    private var taken = 0
    /// The number of bytes not sent yet.
    private(set) var count = 0
    /// The number of bytes that the kernel has accepted so far.
    private(set) var sentCount = 0

    mutating func append(_ bytes: [UInt8]) {
        count += bytes.count
        if bytes.count < Self.smallBytes, let last = pieces.indices.last, last >= first,
            pieces[last].count + bytes.count < Self.collectedBytes
        {
            pieces[last] += bytes
        } else if !bytes.isEmpty {
            pieces.append(bytes)
        }
    }

    /// Drops all unsent bytes.
    mutating func drop() { (pieces, first, taken, count) = ([], 0, 0, 0) }

    /// Sends as much as the kernel accepts. Returns `false` if the connection is broken.
    mutating func send(to socket: Int32) -> Bool {
        while first < pieces.count {
            let sent = pieces[first].withUnsafeBytes { bytes in
                Glibc.send(socket, bytes.baseAddress! + taken, bytes.count - taken, Self.flags)
            }
            if sent < 0 && errno == EINTR { continue }
            if sent < 0 && errno == EAGAIN { return true }
            guard sent > 0 else { return false }
            removeSent(sent)
        }
        return true
    }

    private static let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)

    private mutating func removeSent(_ sent: Int) {
        count -= sent
        sentCount += sent
        taken += sent
        guard taken == pieces[first].count else { return }
        pieces[first] = []
        (first, taken) = (first + 1, 0)
        guard first == pieces.count || first >= 64 else { return }
        pieces.removeFirst(first)
        first = 0
    }
}
