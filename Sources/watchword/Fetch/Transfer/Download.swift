import ArgumentParser
import Glibc
import JSONText
import WatchwordClient

/// Takes one response's body out of a connection of its own, as fast as it comes.
final class Download {
    /// What is taken before somebody else has a turn.
    private static let turnBytes = 16 << 20
    private static let block = UncheckedBlock(bytes: 1 << 20)

    private let stream: AttachedStream
    /// `nil` where nobody wants it.
    var output: ResponseOutput?
    private(set) var receivedBytes = 0
    private(set) var isAtEnd = false
    /// Why it cannot be written.
    private(set) var problem: (any Error)?

    init(from stream: AttachedStream) { self.stream = stream }

    var watch: Watch? { isAtEnd || problem != nil ? nil : Watch(stream.descriptor) { [self] in work() } }

    /// Takes what is there, and waits for nothing.
    func work() {
        let start = receivedBytes
        let block = Self.block.memory
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

/// Memory that all downloads use in turn.
///
/// Unchecked: the program has one thread.
private struct UncheckedBlock: @unchecked Sendable {
    let memory: UnsafeMutableRawBufferPointer

    init(bytes: Int) { memory = .allocate(byteCount: bytes, alignment: 4096) }
}
