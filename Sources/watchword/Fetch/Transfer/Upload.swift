import Glibc
import WatchwordClient

/// Sends one body on a separate connection, as fast as the broker accepts it.
final class Upload {
    /// The maximum size of a single read in bytes.
    private static let blockBytes = 256 << 10
    /// The maximum number of bytes to send before other transfers are served.
    private static let turnBytes = 8 << 20

    private let stream: AttachedStream
    private let reader: ContentReader
    private let block = UnsafeMutableRawBufferPointer.allocate(byteCount: blockBytes, alignment: 16)
    /// The part of `block` that has not been sent.
    private var rest = UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var sentBytes = 0
    private(set) var isDone = false
    /// The error that stopped the upload while a file was read.
    private(set) var problem: (any Error)?

    init(_ content: RequestContent, to stream: AttachedStream) {
        self.stream = stream
        reader = ContentReader(content)
    }

    deinit { block.deallocate() }

    /// The descriptor to watch: the input stream, which may be a terminal, if `rest` is empty; otherwise the connection.
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
                // The connection is not shut down, because a truncated body must not look complete.
                (problem, isDone) = (error, true)
                return
            }
            let count = send(stream.descriptor, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            if count < 0 && errno == EINTR { continue }
            if count < 0 && errno == EAGAIN { return }
            guard count > 0 else {
                // The broker has closed the connection; the result of the fetch contains the reason.
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
