internal import Glibc

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

extension Secret {
    /// Reads from a descriptor up to its end, `capacity` bytes, or until `isEnough` accepts the bytes so far.
    /// - Parameters:
    ///   - error: the `errno` of a read that failed; otherwise unchanged.
    ///   - isEnough: gets the bytes, and how many of them it has seen before.
    package init(
        reading descriptor: Int32, capacity: Int, error: inout Int32,
        isEnough: (_ bytes: UnsafeRawBufferPointer, _ seen: Int) -> Bool = { _, _ in false }
    ) {
        self.init(capacity: capacity) { block in
            var count = 0
            while count < block.count {
                let received = read(descriptor, block.baseAddress! + count, block.count - count)
                if received < 0 && errno == EINTR { continue }
                if received < 0 { error = errno }
                guard received > 0 else { break }
                count += received
                if isEnough(UnsafeRawBufferPointer(rebasing: block[..<count]), count - received) { break }
            }
            return count
        }
    }
}

extension Secret {
    /// Decodes percent-encoding (RFC 3986 section 2.1). Returns `nil` for a `%` without two hexadecimal digits. The caller owns
    /// `text` and wipes it.
    public init?(percentDecoding text: Slice<UnsafeRawBufferPointer>) {
        var isValid = true
        self.init(capacity: text.count) { block in
            var (count, index) = (0, text.startIndex)
            while index < text.endIndex {
                var byte = text[index]
                index += 1
                if byte == UInt8(ascii: "%") {
                    guard index + 1 < text.endIndex, let high = Hexadecimal.value(of: text[index]),
                        let low = Hexadecimal.value(of: text[index + 1])
                    else {
                        isValid = false
                        return count
                    }
                    byte = high << 4 | low
                    index += 2
                }
                block[count] = byte
                count += 1
            }
            return count
        }
        guard isValid else { return nil }
    }
}

/// A part of a longer secret, such as a header field: public text, or a secret.
package enum SecretPart: Sendable {
    case text(String)
    /// Text in another encoding, or a body.
    case bytes([UInt8])
    case secret(Secret)

    package func withUnsafeBytes(_ body: (UnsafeRawBufferPointer) -> Void) {
        switch self {
        case .text(var text): text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
        case .bytes(let bytes): bytes.withUnsafeBytes { body($0) }
        case .secret(let secret): secret.withUnsafeBytes { body($0) }
        }
    }

    fileprivate var count: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .bytes(let bytes): bytes.count
        case .secret(let secret): secret.count
        }
    }
}

extension Secret {
    /// Concatenates the parts.
    package init(joining parts: [SecretPart]) {
        self.init(capacity: parts.reduce(0) { $0 + $1.count }) { destination in
            var count = 0
            for part in parts {
                part.withUnsafeBytes { bytes in
                    UnsafeMutableRawBufferPointer(rebasing: destination[count...]).copyMemory(from: bytes)
                    count += bytes.count
                }
            }
            return count
        }
    }
}
