public import WatchwordProtocol

/// An incremental parser of the requests of one connection (RFC 9112).
///
/// It is strict: a request that another server might read differently is refused. Its time is linear in the input, and
/// it holds at most one incomplete head besides the bytes of the last `append`.
public struct FrontRequestReader: ~Copyable, Sendable {
    /// A part of a request. Each request is one `head`, any number of `body`, and one `end`. After the head of CONNECT
    /// nothing follows; the further bytes belong to the tunnel.
    public enum Item: Sendable, Equatable {
        case head(FrontRequest)
        /// A part of the body, without its coding.
        case body([UInt8])
        case end(trailers: [HeaderField])
        /// Nothing follows, because the boundaries of further requests are uncertain.
        case refused(FrontRefusal)
    }

    private enum State {
        case requestLine(emptyLines: Int)
        case fields(FrontHead)
        case sized(Int)
        case chunkSize
        case chunk(Int)
        case trailers(FrontTrailers)
        case tunnel
        case refused
    }

    private enum Step {
        case item(Item)
        case next
        case needsBytes
    }

    private let limits: FrontLimits
    private var buffer = WipingBuffer(retaining: 4096)
    private var state = State.requestLine(emptyLines: 0)
    /// The number of buffered bytes without a line end, so that no byte is searched twice.
    private var searched = 0
    /// The chunk extensions of the current body.
    private var extensionBytes = 0

    public init(_ limits: FrontLimits = FrontLimits()) { self.limits = limits }

    /// The number of received bytes after the last item.
    public var bufferedBytes: Int { buffer.count }

    /// Adds received bytes. Call `next` until it returns `nil` before adding more.
    public mutating func append(_ bytes: UnsafeRawBufferPointer) {
        if case .refused = state { return }
        buffer.append(bytes)
    }

    /// Returns the next part, or `nil` if more bytes are needed.
    public mutating func next() -> Item? {
        do throws(FrontRefusal) {
            while true {
                switch try step() {
                case .item(let item): return item
                case .needsBytes: return nil
                case .next: continue
                }
            }
        } catch {
            state = .refused  // guard: front-refused-once
            buffer.removeFirst(buffer.count)
            return .refused(error)
        }
    }

    /// Returns and removes the bytes after the last item. After the head of CONNECT, or an upgrade, they belong to the
    /// tunnel.
    public mutating func takeRest() -> [UInt8] {
        searched = 0
        let rest = Array(buffer.bytes)
        // A tunnel may be idle for long, and needs no buffer.
        buffer = WipingBuffer(retaining: 4096)
        return rest
    }

    private mutating func step() throws(FrontRefusal) -> Step {
        switch state {
        case .requestLine(let emptyLines): try requestLine(emptyLines)
        case .fields(let head): try fields(head)
        case .sized(0): end([])
        case .sized(let rest): part(rest) { .sized($0) }
        case .chunkSize: try chunkSize()
        case .chunk(0): try chunkEnd()
        case .chunk(let rest): part(rest) { .chunk($0) }
        case .trailers(let trailers): try self.trailers(trailers)
        case .tunnel, .refused: .needsBytes
        }
    }

    private mutating func requestLine(_ emptyLines: Int) throws(FrontRefusal) -> Step {
        guard let first = buffer.bytes.first else { return .needsBytes }
        guard FrontRequestLine.canBegin(with: first) else { throw .requestLine }
        let tooLong = FrontRequestLine.refusal(ofLong: buffer.bytes)
        guard let length = try lineLength(limits.headBytes, tooLong) else { return .needsBytes }
        if length == 2 {
            guard emptyLines < limits.emptyLines else { throw .emptyLines }
            state = .requestLine(emptyLines: emptyLines + 1)
        } else {
            state = .fields(try FrontHead(line(length), byteCount: length))
        }
        buffer.removeFirst(length)
        return .next
    }

    private mutating func fields(_ head: FrontHead) throws(FrontRefusal) -> Step {
        var head = head
        while let length = try lineLength(limits.headBytes - head.byteCount, .headSize) {
            if length == 2 { return begin(try head.request()) }
            try head.add(line(length), byteCount: length, limits)
            buffer.removeFirst(length)
        }
        state = .fields(head)
        return .needsBytes
    }

    private mutating func begin(_ request: FrontRequest) -> Step {
        buffer.removeFirst(2)
        extensionBytes = 0
        state =
            switch request.body {
            case .none: request.isConnect ? .tunnel : .sized(0)
            case .sized(let count): .sized(count)
            case .chunked: .chunkSize
            }
        return .item(.head(request))
    }

    private mutating func part(_ rest: Int, _ state: (Int) -> State) -> Step {
        let count = min(rest, buffer.count, limits.partBytes)
        guard count > 0 else { return .needsBytes }
        let bytes = Array(buffer.bytes[..<count])
        buffer.removeFirst(count)
        self.state = state(rest - count)
        return .item(.body(bytes))
    }

    private mutating func chunkSize() throws(FrontRefusal) -> Step {
        let longest = FrontChunk.digits + limits.chunkExtensionBytes - extensionBytes + 2
        guard let length = try lineLength(longest, .chunkExtension) else { return .needsBytes }
        let chunk = try FrontChunk(line(length))
        extensionBytes += chunk.extensionBytes
        guard extensionBytes <= limits.chunkExtensionBytes else { throw .chunkExtension }
        buffer.removeFirst(length)
        state = chunk.size == 0 ? .trailers(FrontTrailers()) : .chunk(chunk.size)
        return .next
    }

    private mutating func chunkEnd() throws(FrontRefusal) -> Step {
        let end = buffer.bytes.prefix(2)
        guard end.elementsEqual([0x0D, 0x0A].prefix(end.count)) else { throw .chunk }
        guard end.count == 2 else { return .needsBytes }
        buffer.removeFirst(2)
        state = .chunkSize
        return .next
    }

    private mutating func trailers(_ trailers: FrontTrailers) throws(FrontRefusal) -> Step {
        var trailers = trailers
        while let length = try lineLength(limits.headBytes - trailers.byteCount, .headSize) {
            if length == 2 {
                buffer.removeFirst(2)
                return end(trailers.fields)
            }
            try trailers.add(line(length), byteCount: length, limits)
            buffer.removeFirst(length)
        }
        state = .trailers(trailers)
        return .needsBytes
    }

    private mutating func end(_ trailers: [HeaderField]) -> Step {
        state = .requestLine(emptyLines: 0)
        return .item(.end(trailers: trailers))
    }

    /// The first buffered line of `length` bytes, without its line end.
    private func line(_ length: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: buffer.bytes[..<(length - 2)])
    }

    /// Returns the length of the first line including CR and LF, or `nil` if its end has not been received. Throws
    /// `tooLong` if it does not end within `limit` bytes.
    private mutating func lineLength(_ limit: Int, _ tooLong: FrontRefusal) throws(FrontRefusal) -> Int? {
        let bytes = buffer.bytes
        let end = min(bytes.count, max(limit, 0))
        guard let lineFeed = bytes[min(searched, end)..<end].firstIndex(of: 0x0A) else {
            guard bytes.count < limit else { throw tooLong }
            searched = end
            return nil
        }
        searched = 0
        guard lineFeed > 0, bytes[lineFeed - 1] == 0x0D else { throw .lineFeed }  // guard: front-line-feed
        return lineFeed + 1
    }
}
