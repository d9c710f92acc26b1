/// Bytes that must not be seen: a password, a token, a header that carries one.
///
/// The bytes live in one block of `SecretMemory` that is shared by all copies of the value and wiped when the last copy goes. There
/// is no way to turn a secret into a `String`, it prints and reflects as `(secret)`, it is not `Codable`, and two secrets
/// compare in constant time.
public struct Secret: Sendable {
    private let storage: Storage

    /// Copies `bytes`. The caller keeps, and wipes, its own.
    public init(copying bytes: UnsafeRawBufferPointer) {
        self.init(capacity: bytes.count) { block in
            block.copyMemory(from: bytes)
            return bytes.count
        }
    }

    /// Makes a secret of at most `capacity` bytes, written in place by `fill`, which returns how many it wrote.
    public init(capacity: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Int) rethrows {
        try self.init(capacity: capacity, in: .shared, fill: fill)
    }

    init(
        capacity: Int, in memory: SecretMemory, fill: (UnsafeMutableRawBufferPointer) throws -> Int
    ) rethrows {
        let block = SecretBlock(byteCount: capacity, in: memory)
        let count = try fill(UnsafeMutableRawBufferPointer(rebasing: block.bytes[..<capacity]))
        precondition(count >= 0 && count <= capacity, "a secret cannot be longer than its block")
        self.storage = Storage(block: block, count: count)
    }

    /// Whether it is kept from swap: what is not should not be kept for long.
    public var isLocked: Bool { storage.block.isLocked }

    /// The number of bytes.
    public var count: Int { storage.count }

    public var isEmpty: Bool { count == 0 }

    /// Lends the bytes for the length of the call; they must not be kept.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(rebasing: storage.block.bytes[..<storage.count]))
    }
}

extension Secret: Equatable {
    /// Looks at every byte whatever the first difference; only the lengths can be told apart by time.
    public static func == (left: Secret, right: Secret) -> Bool {
        guard left.count == right.count else { return false }
        return left.withUnsafeBytes { leftBytes in
            right.withUnsafeBytes { rightBytes in
                var difference: UInt8 = 0
                for index in leftBytes.indices { difference |= leftBytes[index] ^ rightBytes[index] }
                return difference == 0
            }
        }
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "(secret)" }
    public var debugDescription: String { "(secret)" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Secret {
    /// The owner of the block. Immutable once made, so that it can be read from every thread.
    private final class Storage: Sendable {
        // `nonisolated(unsafe)`: written only before the storage is made.
        nonisolated(unsafe) let block: SecretBlock
        let count: Int

        init(block: consuming SecretBlock, count: Int) {
            self.block = block
            self.count = count
        }
    }
}
