internal import Glibc

/// What waits to be sent on a socket, in order. Small pieces are collected, so that a thousand replies do not each have memory of
/// their own; a large one stays as it came.
struct OutgoingBytes: ~Copyable {
    private static let smallBytes = 4096
    private static let collectedBytes = 64 << 10

    private var pieces: [[UInt8]] = []
    /// The first piece that has not gone out, and how much of it has.
    private var first = 0
    private var taken = 0
    private(set) var count = 0
    /// All that the kernel has taken so far.
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

    /// Nothing of it is sent any more.
    mutating func drop() { (pieces, first, taken, count) = ([], 0, 0, 0) }

    /// Sends what there is room for. `false` when the peer cannot read any more.
    mutating func send(to socket: Int32) -> Bool {
        while first < pieces.count {
            let sent = pieces[first].withUnsafeBytes { bytes in
                Glibc.send(socket, bytes.baseAddress! + taken, bytes.count - taken, Self.flags)
            }
            if sent < 0 && errno == EINTR { continue }
            if sent < 0 && errno == EAGAIN { return true }
            guard sent > 0 else { return false }
            note(sent)
        }
        return true
    }

    private static let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)

    private mutating func note(_ sent: Int) {
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
