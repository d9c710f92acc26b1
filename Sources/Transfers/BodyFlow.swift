internal import WatchwordCore
internal import WatchwordProtocol

/// Delivers the body of one response from libcurl to its reader: in parts, or through a socket.
///
/// Its buffer is small: if the reader is slow, libcurl pauses and the server has to wait. Used on the engine's loop only.
final class BodyFlow {
    typealias Read = (maxBytes: Int, completion: @Sendable (Result<BodyPart, TransferFailure>) -> Void)
    typealias Follower = @Sendable (TransferPort.Delivery) -> Void

    private var buffer: FlowBuffer
    private var socket: ReaderSocket?
    private var read: Read?
    private var follower: Follower?
    /// The result of the transfer; `nil` while more bytes may follow.
    private var source: Result<Void, TransferFailure>?
    /// The fields after the body, known at its end.
    private var trailers = HeaderBlock()
    /// The result of the delivery; `nil` until it has ended.
    private(set) var outcome: TransferPort.Delivery?
    /// Whether libcurl was told to pause.
    var isPaused = false
    /// Called for every event of this body.
    var touched: (() -> Void)?
    private var lastProgress = ContinuousClock.now

    /// - Parameter start: the bytes received so far.
    init(start: [UInt8]) { buffer = FlowBuffer(start) }

    private var isFull: Bool {
        buffer.count >= (socket != nil ? EngineLimits.sentChunkBytes : EngineLimits.bodyBufferBytes)
    }

    var mayResume: Bool { isPaused && hasRoom }

    var hasRoom: Bool { !isFull && source == nil && outcome == nil }

    // MARK: From libcurl

    /// Appends received bytes. Returns `false` if the buffer is full; libcurl then pauses and passes the same bytes again.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard outcome == nil else { return true }
        touched?()
        guard !isFull else {
            isPaused = true
            return false
        }
        if buffer.count == 0 { lastProgress = .now }
        buffer.append(bytes)
        // libcurl passes at most 16 KiB at a time; sending each part at once would need too many system calls.
        if socket == nil || isFull { serve() }
        return true
    }

    /// Sends the collected bytes, unless the socket cannot take more.
    func flush() {
        if socket?.isBlocked == false && buffer.count > 0 { serve() }
    }

    /// Ends the body: no more bytes follow.
    func end(_ result: Result<Void, TransferFailure>, trailers: HeaderBlock = []) {
        guard source == nil else { return }
        touched?()
        (source, self.trailers) = (result, trailers)
        lastProgress = .now
        serve()
    }

    // MARK: To the reader

    func read(_ request: Read) {
        touched?()
        guard outcome == nil, socket == nil, read == nil else {
            return request.completion(.failure(.bodyTaken))
        }
        read = request
        serve()
    }

    func attach(_ socket: consuming BodySocket) {
        touched?()
        guard outcome == nil, self.socket == nil, read == nil else { return }
        self.socket = ReaderSocket(socket)
        serve()
    }

    func follow(_ follower: @escaping Follower) {
        if let outcome { return follower(outcome) }
        touched?()
        self.follower = follower
        lastProgress = .now
    }

    func abort(_ failure: TransferFailure) {
        touched?()
        settle(.failure(failure))
    }

    /// Delivers available bytes to a waiting read or to the socket.
    private func serve() {
        guard outcome == nil else { return }
        if socket != nil { return drain() }
        guard let read, buffer.count > 0 || source != nil else { return }
        self.read = nil
        if buffer.count == 0, case .failure(let failure)? = source {
            read.completion(.failure(failure))
            return settle(.failure(failure))
        }
        let count = min(read.maxBytes, buffer.count)
        var part = BodyPart(bytes: buffer.next(count), offset: buffer.offset, isAtEnd: false)
        lastProgress = .now
        buffer.take(count, freeingBeyond: EngineLimits.bodyBufferBytes, retainsCapacity: source == nil)
        if buffer.count == 0, case .success? = source { (part.isAtEnd, part.trailers) = (true, trailers) }
        read.completion(.success(part))
        if part.isAtEnd { settle(.success(buffer.offset)) }
    }

    private func drain() {
        if buffer.count > 0 {
            guard let sent = buffer.withUnsafeBytes({ socket?.send($0) ?? nil }) else {
                return settle(.failure(.readerGone))
            }
            if sent > 0 { lastProgress = .now }
            buffer.take(sent, freeingBeyond: EngineLimits.sentChunkBytes, retainsCapacity: source == nil)
        }
        guard buffer.count == 0, outcome == nil, let source else { return }
        settle(source.map { buffer.offset })
    }

    private func settle(_ result: TransferPort.Delivery) {
        guard outcome == nil else { return }
        outcome = result
        // The socket is closed before the completions run, so that a client that is notified of the end also finds the end of
        // the stream.
        socket = nil
        buffer.drop()
        if let read, case .failure(let failure) = result { read.completion(.failure(failure)) }
        read = nil
        follower?(result)
        follower = nil
    }

    // MARK: Waiting

    /// The socket to watch, for room to send, and for input: it becomes readable when the peer closes it.
    var watched: (descriptor: Int32, forRoom: Bool, forInput: Bool)? {
        guard outcome == nil, let descriptor = socket?.descriptor else { return nil }
        return (descriptor, buffer.count > 0, socket?.hasInputEnded == false)
    }

    /// Called when the socket is writable or has another event.
    func act() {
        touched?()
        if let problem = socket?.problem() ?? nil { return settle(.failure(problem)) }
        serve()
    }

    /// The time at which the delivery fails if the reader takes nothing; `nil` during a read, while waiting for the server, and
    /// before `follow`.
    var deadline: ContinuousClock.Instant? {
        guard outcome == nil, follower != nil, buffer.count > 0 || source != nil, read == nil else { return nil }
        return lastProgress + .seconds(EngineLimits.readerIdleSeconds)
    }
}

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
