internal import CJansson

extension JSON {
    /// Digits kept of a number with a fraction: enough for every time and size, and `41.2` stays `41.2`.
    private static let significantDigits = 15

    private static let flags = Int(JSON_COMPACT | JSON_ENCODE_ANY) | (significantDigits << 11)

    /// The value as compact text, members in the order in which they were added, without a line end.
    ///
    /// Not for a value that holds a secret: the result grows, and leaves copies behind. `write(_:)` is for those.
    public func serialized() -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(2048)
        append(to: &text)
        return text
    }

    /// Appends the text of `serialized()`.
    public func append(to text: inout [UInt8]) {
        let status = withUnsafeMutablePointer(to: &text) { destination in
            json_dump_callback(
                node.pointer,
                { bytes, count, destination in
                    guard let destination else { return -1 }
                    destination.assumingMemoryBound(to: [UInt8].self).pointee
                        .append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: count))
                    return 0
                }, destination, Self.flags)
        }
        precondition(status == 0, "every value that was parsed or built can be written")
    }

    /// The number of bytes of `serialized()`.
    public var serializedCount: Int { json_dumpb(node.pointer, nil, 0, Self.flags) }

    /// Writes the text of `serialized()` into memory of the caller's, which must have room for `serializedCount` bytes, and
    /// leaves no copy elsewhere.
    public func write(_ destination: UnsafeMutableRawBufferPointer) {
        let start = destination.baseAddress?.assumingMemoryBound(to: CChar.self)
        let count = json_dumpb(node.pointer, start, destination.count, Self.flags)
        precondition(count <= destination.count, "the destination is too small")
    }
}
