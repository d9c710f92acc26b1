/// A buffer of body bytes that the reader has not taken yet.
struct FlowBuffer {
    private var bytes: [UInt8]
    /// The number of bytes at the start of `bytes` that have been taken.
    private var taken = 0
    /// The total number of bytes that have been taken.
    private(set) var offset = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var count: Int { bytes.count - taken }

    mutating func append(_ received: UnsafeRawBufferPointer) { bytes.append(contentsOf: received) }

    /// Returns the next `count` bytes; the buffer must contain as many.
    func next(_ count: Int) -> [UInt8] { Array(bytes[taken..<(taken + count)]) }

    func withUnsafeBytes<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[taken...])) }
    }

    /// Removes the next `count` bytes.
    /// - Parameters:
    ///   - limit: the number of taken bytes at which the buffer frees them, so that it does not grow when the reader is slow.
    ///   - retainsCapacity: whether more bytes follow.
    mutating func take(_ count: Int, freeingBeyond limit: Int, retainsCapacity: Bool) {
        taken += count
        offset += count
        if taken == bytes.count {
            taken = 0
            bytes.removeAll(keepingCapacity: retainsCapacity)
        } else if taken >= limit {
            bytes.removeFirst(taken)
            taken = 0
        }
    }

    /// Frees all bytes.
    mutating func drop() { (bytes, taken) = ([], 0) }
}
