internal import CZlib

/// Decodes the content coding of one body (RFC 9110 section 8.4.1). libcurl's decoder refuses a second member of gzip (RFC 1952
/// section 2.2), decodes everything at once, and accepts a body that ends early.
final class BodyDecoder {
    enum Coding { case gzip, deflate }

    private static let partBytes = 32 << 10

    private let coding: Coding
    // zlib's state contains the address.
    private let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    private var isOpen = false
    /// The first bytes of `deflate`, until there are two.
    private var start: [UInt8] = []
    /// The bytes of the current block that are decoded. The block is passed again after a pause.
    private var taken = 0
    private var part = [UInt8](repeating: 0, count: partBytes)
    /// The bytes of `part` that the receiver has not taken.
    private var waiting = 0
    /// Whether zlib may hold more decoded bytes than fitted into `part`.
    private var isFull = false
    private var hasBegun = false
    private var isAtEnd = false
    private(set) var isBroken = false

    init(_ coding: Coding) {
        self.coding = coding
        stream.initialize(to: z_stream())
    }

    deinit {
        if isOpen { inflateEnd(stream) }
        stream.deallocate()
    }

    /// Whether the body is empty or has ended with its last byte.
    var isComplete: Bool { !hasBegun || isAtEnd && !isBroken }

    /// Decodes a block, and passes the result on in parts until `receive` does not take one; then the block has to be passed
    /// again. Ignores everything behind an error.
    func decode(
        _ block: UnsafeRawBufferPointer, to receive: (UnsafeRawBufferPointer) -> CurlTransfer.Recorded
    ) -> CurlTransfer.Recorded {
        while true {
            if waiting > 0 {
                let recorded = part.withUnsafeBytes { receive(UnsafeRawBufferPointer(rebasing: $0[..<waiting])) }
                guard recorded == .all else { return recorded }
                waiting = 0
            }
            guard !isBroken, isFull || taken < block.count else { break }
            decodeNext(of: block)
        }
        taken = 0
        return .all
    }

    private func decodeNext(of block: UnsafeRawBufferPointer) {
        hasBegun = true
        guard isOpen || open(block) else { return }
        if isAtEnd { beginMember(block[taken]) }
        if isBroken { return }
        if !start.isEmpty {
            start.withUnsafeBytes { _ = inflate($0) }
            start = []
        } else {
            taken += inflate(UnsafeRawBufferPointer(rebasing: block[taken...]))
        }
    }

    /// Some servers send `deflate` without the header of zlib that RFC 9110 section 8.4.1.2 requires.
    /// - Returns: whether the format is known.
    private func open(_ block: UnsafeRawBufferPointer) -> Bool {
        var windowBits = MAX_WBITS + 16
        if coding == .deflate {
            start.append(block[taken])
            taken += 1
            guard start.count == 2 else { return false }
            let hasHeader = start[0] & 0x0F == 8 && (Int(start[0]) << 8 | Int(start[1])) % 31 == 0
            windowBits = hasHeader ? MAX_WBITS : -MAX_WBITS
        }
        isOpen = inflateInit2_(stream, windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
        isBroken = !isOpen
        return isOpen
    }

    /// - Parameter first: the first byte behind the end of a member.
    private func beginMember(_ first: UInt8) {
        isAtEnd = false
        isBroken = coding != .gzip || first != 0x1F || inflateReset(stream) != Z_OK
    }

    /// Returns the number of bytes that were decoded.
    private func inflate(_ input: UnsafeRawBufferPointer) -> Int {
        let source = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.next_in = source.map { UnsafeMutablePointer(mutating: $0) }
        stream.pointee.avail_in = UInt32(input.count)
        let code = part.withUnsafeMutableBufferPointer { part in
            stream.pointee.next_out = part.baseAddress
            stream.pointee.avail_out = UInt32(part.count)
            return CZlib.inflate(stream, Z_NO_FLUSH)
        }
        waiting = Self.partBytes - Int(stream.pointee.avail_out)
        isAtEnd = code == Z_STREAM_END
        isFull = code == Z_OK && stream.pointee.avail_out == 0
        isBroken = ![Z_OK, Z_STREAM_END, Z_BUF_ERROR].contains(code)
        return input.count - Int(stream.pointee.avail_in)
    }
}
