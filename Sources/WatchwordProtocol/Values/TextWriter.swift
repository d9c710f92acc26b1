/// Writes texts to memory that is large enough for all of them, which takes less time than appending them to an array or
/// a string.
package struct TextWriter {
    private let buffer: UnsafeMutableBufferPointer<UInt8>
    private var count = 0

    package init(_ buffer: UnsafeMutableBufferPointer<UInt8>) { self.buffer = buffer }

    package var written: Slice<UnsafeMutableBufferPointer<UInt8>> { buffer[..<count] }

    package mutating func write(_ text: String) {
        text.withBytes { bytes in
            precondition(bytes.count <= buffer.count - count, "no room for a text")
            guard let start = bytes.baseAddress, let target = buffer.baseAddress else { return }
            (target + count).update(from: start, count: bytes.count)
            count += bytes.count
        }
    }

    /// Writes a part of a header section, with the bytes that were received.
    package mutating func write(header text: String) {
        guard text.isMarked else { return write(text) }
        text.withBytes { bytes in
            precondition(bytes.count <= buffer.count - count, "no room for a text")
            for byte in HeaderBytes(bytes) {
                buffer[count] = byte
                count += 1
            }
        }
    }
}
