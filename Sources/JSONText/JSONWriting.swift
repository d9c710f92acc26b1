extension JSON {
    /// The value as compact text, members in the order in which they were added, without a line end. `end` follows it.
    ///
    /// It is measured first and then written where it stays: nothing grows and leaves copies behind.
    public func serialized(terminator end: StaticString = "") -> [UInt8] {
        let count = serializedCount + end.utf8CodeUnitCount
        return Array(unsafeUninitializedCapacity: count) { buffer, initialized in
            var writer = JSONWriter(UnsafeMutableRawBufferPointer(buffer))
            writer.append(self)
            writer.append(end)
            initialized = writer.count
        }
    }

    /// The number of bytes of `serialized()`.
    public var serializedCount: Int {
        var writer = JSONWriter(UnsafeMutableRawBufferPointer(start: nil, count: 0))
        writer.append(self)
        return writer.count
    }

    /// Writes the text of `serialized()` into memory of the caller's, which must have room for `serializedCount` bytes.
    public func write(_ destination: UnsafeMutableRawBufferPointer) {
        var writer = JSONWriter(destination)
        writer.append(self)
        precondition(writer.count <= destination.count, "the destination is too small")
    }
}
