import ArgumentParser
import Glibc
import JSONText
import WatchwordClient

/// Receives the body of one response on a separate connection.
final class Download {
    /// The maximum number of bytes to receive before other transfers are served.
    private static let turnBytes = 16 << 20
    /// The maximum size of a single read in bytes.
    private static let blockBytes = 1 << 20

    private let stream: AttachedStream
    /// The destination; `nil` discards the body.
    var output: ResponseOutput?
    private(set) var receivedBytes = 0
    private(set) var isAtEnd = false
    /// The error that occurred while writing.
    private(set) var problem: (any Error)?

    init(from stream: AttachedStream) { self.stream = stream }

    var watch: Watch? { isAtEnd || problem != nil ? nil : Watch(stream.descriptor) { [self] in work() } }

    /// Receives the available bytes without blocking.
    func work() {
        withUnsafeTemporaryAllocation(byteCount: Self.blockBytes, alignment: 4096) { work(with: $0) }
    }

    private func work(with block: UnsafeMutableRawBufferPointer) {
        let start = receivedBytes
        while receivedBytes - start < Self.turnBytes {
            let count = recv(stream.descriptor, block.baseAddress, block.count, 0)
            if count < 0 && errno == EINTR { continue }
            if count < 0 && errno == EAGAIN { return }
            guard count > 0 else {
                isAtEnd = true
                return
            }
            receivedBytes += count
            do { try output?.write(UnsafeRawBufferPointer(rebasing: block[..<count])) } catch {
                problem = error
                return
            }
        }
    }
}
