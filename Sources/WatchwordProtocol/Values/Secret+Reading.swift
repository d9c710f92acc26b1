internal import Glibc

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
