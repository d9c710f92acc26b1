/// Splits the bytes of one peer into messages, without parsing them.
///
/// The first bytes show the framing. After that, each message is a line, or a header section and a body. The rest of a
/// message that is too large is skipped.
public struct FrameDecoder: ~Copyable {
    public enum Event {
        /// One message. The bytes are valid only during the call.
        case message(UnsafeRawBufferPointer)
        /// A message above the limit. It is skipped; the next message is read as usual.
        case tooLarge
    }

    private enum State: Equatable {
        case detecting
        /// The first `searched` bytes of the buffer contain no LF.
        case line(searched: Int)
        case skippingLine
        case header
        case body(count: Int)
        case skippingBody(remaining: Int)
    }

    private var state = State.detecting
    private var buffer = WipingBuffer(retaining: Self.retainedBytes)
    private let maxMessageBytes: Int
    /// The capacity kept between messages, so that one large message does not occupy memory permanently.
    private static let retainedBytes = 64 << 10

    public init(maxMessageBytes: Int = Limits.messageBytes) { self.maxMessageBytes = maxMessageBytes }

    /// The framing of the peer; `nil` until it is detected.
    public var framing: Framing? {
        switch state {
        case .detecting: nil
        case .line, .skippingLine: .lines
        case .header, .body, .skippingBody: .headers
        }
    }

    /// The number of bytes buffered for an incomplete message.
    public var bufferedCount: Int { buffer.bytes.count }

    /// Discards the buffered bytes. `feed` must not be called afterwards.
    public mutating func dropUnread() { buffer = WipingBuffer(retaining: Self.retainedBytes) }

    /// The number of bytes already received of an incomplete message; `nil` between two messages. For a message that is being
    /// skipped, the size limit.
    public var unfinishedCount: Int? {
        switch state {
        case .detecting, .line, .header: buffer.isEmpty ? nil : buffer.count
        case .body: buffer.count
        case .skippingLine, .skippingBody: maxMessageBytes
        }
    }

    /// Consumes received bytes, and calls `handle` for each message that they complete, in order.
    ///
    /// After an error, `feed` must not be called again.
    public mutating func feed(
        _ bytes: UnsafeRawBufferPointer, _ handle: (Event) -> Void
    ) throws(FramingFailure) {
        if buffer.isEmpty {
            let used = try consume(bytes, handle)
            buffer.append(UnsafeRawBufferPointer(rebasing: bytes[used...]))
        } else {
            buffer.append(bytes)
            let used = try consume(buffer.bytes, handle)
            buffer.removeFirst(used)
        }
    }

    /// Reads all complete messages, and returns the number of bytes consumed.
    private mutating func consume(
        _ bytes: UnsafeRawBufferPointer, _ handle: (Event) -> Void
    ) throws(FramingFailure) -> Int {
        var used = 0
        while used < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[used...])
            guard let step = try step(rest, handle) else { break }
            used += step
        }
        return used
    }

    /// Performs one state transition. Returns the number of bytes consumed, or `nil` if more bytes are needed.
    private mutating func step(
        _ bytes: UnsafeRawBufferPointer, _ handle: (Event) -> Void
    ) throws(FramingFailure) -> Int? {
        switch state {
        case .detecting: return try detect(bytes)
        case .line(let searched): return readLine(bytes, searched: searched, handle)
        case .skippingLine: return skipLine(bytes)
        case .header: return try readHeader(bytes, handle)
        case .body(let count): return readBody(bytes, count: count, handle)
        case .skippingBody(let remaining):
            let skipped = min(remaining, bytes.count)
            state = skipped == remaining ? .header : .skippingBody(remaining: remaining - skipped)
            return skipped
        }
    }

    private mutating func detect(_ bytes: UnsafeRawBufferPointer) throws(FramingFailure) -> Int? {
        if bytes[0].isBlank { return 1 }
        if bytes[0] == UInt8(ascii: "{") || bytes[0] == UInt8(ascii: "[") {
            state = .line(searched: 0)
            return 0
        }
        let prefix = "content-".utf8
        let matches = zip(bytes, prefix).allSatisfy { $0.asciiLowercased == $1 }
        guard matches else { throw .unknownFraming }
        guard bytes.count >= prefix.count else { return nil }
        state = .header
        return 0
    }

    private mutating func readLine(
        _ bytes: UnsafeRawBufferPointer, searched: Int, _ handle: (Event) -> Void
    ) -> Int? {
        guard let end = bytes.lineEnd(from: searched) else {
            guard bytes.count <= maxMessageBytes else {
                handle(.tooLarge)
                state = .skippingLine
                return bytes.count
            }
            state = .line(searched: bytes.count)
            return nil
        }
        state = .line(searched: 0)
        let line = UnsafeRawBufferPointer(rebasing: bytes[..<end])
        if line.count > maxMessageBytes {
            handle(.tooLarge)
        } else if !line.allSatisfy(\.isBlank) {
            handle(.message(line))
        }
        return end + 1
    }

    private mutating func skipLine(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let end = bytes.lineEnd(from: 0) else { return bytes.count }
        state = .line(searched: 0)
        return end + 1
    }

    private mutating func readHeader(
        _ bytes: UnsafeRawBufferPointer, _ handle: (Event) -> Void
    ) throws(FramingFailure) -> Int? {
        guard let length = FrameHeader.length(of: bytes) else {
            if bytes.count >= Limits.frameHeaderBytes { throw .headerTooLarge }
            return nil
        }
        let contentLength = try FrameHeader.contentLength(UnsafeRawBufferPointer(rebasing: bytes[..<length]))
        if contentLength > maxMessageBytes {
            handle(.tooLarge)
            state = .skippingBody(remaining: contentLength)
        } else if contentLength > 0 {
            state = .body(count: contentLength)
        }
        return length
    }

    private mutating func readBody(
        _ bytes: UnsafeRawBufferPointer, count: Int, _ handle: (Event) -> Void
    ) -> Int? {
        guard bytes.count >= count else { return nil }
        state = .header
        handle(.message(UnsafeRawBufferPointer(rebasing: bytes[..<count])))
        return count
    }
}
