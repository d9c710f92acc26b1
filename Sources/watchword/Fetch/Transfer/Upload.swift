import Glibc
import WatchwordClient

/// Sends one body through a connection of its own, as fast as the broker takes it.
final class Upload {
    /// What is read at once.
    private static let blockBytes = 256 << 10
    /// What is sent before somebody else has a turn.
    private static let turnBytes = 8 << 20

    private let stream: AttachedStream
    private let reader: ContentReader
    private let block = UnsafeMutableRawBufferPointer.allocate(byteCount: blockBytes, alignment: 16)
    /// What of `block` has not been sent.
    private var rest = UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var sentBytes = 0
    private(set) var isDone = false
    /// Why it cannot go on: a file that cannot be read.
    private(set) var problem: (any Error)?

    init(_ content: RequestContent, to stream: AttachedStream) {
        self.stream = stream
        reader = ContentReader(content)
    }

    deinit { block.deallocate() }

    /// A stream is waited for, when nothing is left to send: it may be a person who types.
    var watch: Watch? {
        if isDone { return nil }
        if rest.isEmpty, let input = reader.stream { return Watch(input) { [self] in work() } }
        return Watch(stream.descriptor, isForWriting: true) { [self] in work() }
    }

    private func work() {
        let start = sentBytes
        while !isDone && sentBytes - start < Self.turnBytes {
            do {
                if rest.isEmpty {
                    if sentBytes > start && reader.stream != nil { return }
                    let count = try reader.read(into: block)
                    rest = UnsafeRawBufferPointer(rebasing: block[..<count])
                    if count == 0 { return end() }
                }
            } catch {
                // Not shut down: a body that was cut off must not look whole.
                (problem, isDone) = (error, true)
                return
            }
            let count = send(stream.descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            if count < 0 && errno == EINTR { continue }
            if count < 0 && errno == EAGAIN { return }
            guard count > 0 else {
                // The broker has seen enough; it says why.
                isDone = true
                return
            }
            sentBytes += count
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    private func end() {
        stream.finishWriting()
        isDone = true
    }
}
