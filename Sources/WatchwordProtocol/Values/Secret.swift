/// Secret bytes: a password, a token, or a header that contains one.
///
/// All copies of the value share one block of `SecretMemory`, which is wiped when the last copy is destroyed. A secret cannot
/// be converted to a `String`, prints and reflects as `(secret)`, is not `Codable`, and compares in constant time.
public struct Secret: Sendable {
    private let storage: Storage

    /// Copies `bytes`. The caller owns `bytes` and wipes them.
    public init(copying bytes: UnsafeRawBufferPointer) {
        self.init(capacity: bytes.count) { block in
            block.copyMemory(from: bytes)
            return bytes.count
        }
    }

    /// Creates a secret of at most `capacity` bytes. `fill` writes them in place and returns their number.
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

    /// Whether the memory is locked against swapping. An unlocked secret should not be stored for long.
    public var isLocked: Bool { storage.block.isLocked }

    public var count: Int { storage.count }

    public var isEmpty: Bool { count == 0 }

    /// Calls `body` with the bytes, which are valid only during the call.
    public func withUnsafeBytes<Result, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(rebasing: storage.block.bytes[..<storage.count]))
    }
}

extension Secret: Equatable {
    /// Compares every byte, so that the time depends only on the lengths.
    public static func == (left: Secret, right: Secret) -> Bool {
        guard left.count == right.count else { return false }
        return left.withUnsafeBytes { leftBytes in
            right.withUnsafeBytes { rightBytes in
                var difference: UInt8 = 0
                // guard: secret-equality
                for index in leftBytes.indices { difference |= leftBytes[index] ^ rightBytes[index] }
                return difference == 0
            }
        }
    }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "(secret)" }
    public var debugDescription: String { "(secret)" }  // guard: secret-is-not-printed
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Secret {
    /// The owner of the block. The block is not written after initialization, so all threads can read it.
    private final class Storage: Sendable {
        let block: SecretBlock
        let count: Int

        init(block: consuming SecretBlock, count: Int) {
            self.block = block
            self.count = count
        }
    }
}
