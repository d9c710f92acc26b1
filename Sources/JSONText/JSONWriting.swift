extension JSON {
    /// Returns the value as compact text, followed by `end`. Members are in the order in which they were added.
    ///
    /// The size is computed first, because a growing buffer would leave copies of secrets in freed memory.
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

    /// Writes the text of `serialized()` to a buffer of at least `serializedCount` bytes.
    public func write(_ destination: UnsafeMutableRawBufferPointer) {
        var writer = JSONWriter(destination)
        writer.append(self)
        precondition(writer.count <= destination.count, "the destination is too small")
    }
}
