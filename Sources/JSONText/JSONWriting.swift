internal import CPlatform

extension JSON: JSONWritable {
    public func write(to writer: inout JSONWriter) { writer.append(self) }
}

extension JSONWritable {
    /// Returns the value as compact text, followed by `end`. Members are in the order in which they were added.
    ///
    /// The buffer never grows, because that would leave copies of secrets in freed memory: a text larger than usual is
    /// written twice, and the first part of it wiped.
    public func serialized(terminator end: StaticString = "") -> [UInt8] {
        var count = usualBytes
        while true {
            let capacity = count
            let text = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, initialized in
                var writer = JSONWriter(UnsafeMutableRawBufferPointer(buffer))
                write(to: &writer)
                writer.append(end)
                count = writer.count
                if count <= capacity { initialized = count } else { watchword_wipe(buffer.baseAddress, buffer.count) }
            }
            if count <= capacity { return text }
        }
    }

    /// The number of bytes of `serialized()`.
    public var serializedCount: Int {
        var writer = JSONWriter(UnsafeMutableRawBufferPointer(start: nil, count: 0))
        write(to: &writer)
        return writer.count
    }

    /// Writes the text of `serialized()` to a buffer of at least `serializedCount` bytes.
    public func write(_ destination: UnsafeMutableRawBufferPointer) {
        var writer = JSONWriter(destination)
        write(to: &writer)
        precondition(writer.count <= destination.count, "the destination is too small")
    }
}

/// The size of the buffer in which a text is written at first.
private let usualBytes = 2048
