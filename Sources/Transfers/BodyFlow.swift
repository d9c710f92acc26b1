internal import WatchwordCore

/// The body of one response on its way from libcurl to whoever takes it: in parts, or through a socket.
///
/// Holds little: when nobody takes, libcurl is told to pause, and the server has to wait. Lives on the engine's loop.
final class BodyFlow {
    typealias Read = (maxBytes: Int, completion: @Sendable (Result<BodyPart, TransferFailure>) -> Void)
    typealias Follower = @Sendable (TransferPort.Delivery) -> Void

    private var buffer: [UInt8] = []
    /// What of the buffer has been taken.
    private var taken = 0
    /// Taken in all.
    private var offset = 0
    private var socket: BodySocket?
    /// There was no room for all at the last time.
    private var isBlocked = false
    /// The peer has shut down its writing side, and goes on reading.
    private var hasInputEnded = false
    private var read: Read?
    private var follower: Follower?
    /// What libcurl has come to; `nil` while there may be more.
    private var source: Result<Void, TransferFailure>?
    /// How it ended; nothing happens any more.
    private(set) var outcome: TransferPort.Delivery?
    /// libcurl was told to pause.
    var isPaused = false
    /// Told whenever something has happened to it.
    var touched: (() -> Void)?
    private var lastProgress = ContinuousClock.now

    /// - Parameter start: what has come already.
    init(start: [UInt8]) { buffer = start }

    private var waitingCount: Int { buffer.count - taken }

    private var isFull: Bool {
        waitingCount >= (socket != nil ? EngineLimits.sentChunkBytes : EngineLimits.bodyBufferBytes)
    }

    var mayResume: Bool { isPaused && hasRoom }

    var hasRoom: Bool { !isFull && source == nil && outcome == nil }

    // MARK: From libcurl

    /// `false` when there is no room: libcurl has to come again with the same bytes.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard outcome == nil else { return true }
        touched?()
        guard !isFull else {
            isPaused = true
            return false
        }
        if waitingCount == 0 { lastProgress = .now }
        buffer.append(contentsOf: bytes)
        // libcurl comes with 16 KiB at most, and a call for each would cost more than all the rest.
        if socket == nil || isFull { serve() }
        return true
    }

    /// Sends what was collected, unless there was no room before.
    func flush() {
        if socket != nil && waitingCount > 0 && !isBlocked { serve() }
    }

    /// No more comes.
    func end(_ result: Result<Void, TransferFailure>) {
        guard source == nil else { return }
        touched?()
        source = result
        lastProgress = .now
        serve()
    }

    // MARK: To whoever takes it

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
        self.socket = consume socket
        serve()
    }

    func follow(_ follower: @escaping Follower) {
        if let outcome { return follower(outcome) }
        touched?()
        self.follower = follower
        lastProgress = .now
    }

    func giveUp(_ failure: TransferFailure) {
        touched?()
        settle(.failure(failure))
    }

    /// Hands over what can be handed over.
    private func serve() {
        guard outcome == nil else { return }
        if socket != nil { return drain() }
        guard let read, waitingCount > 0 || source != nil else { return }
        self.read = nil
        if waitingCount == 0, case .failure(let failure)? = source {
            read.completion(.failure(failure))
            return settle(.failure(failure))
        }
        let count = min(read.maxBytes, waitingCount)
        var part = BodyPart(bytes: Array(buffer[taken..<(taken + count)]), offset: offset, isAtEnd: false)
        take(count)
        if waitingCount == 0, case .success? = source { part.isAtEnd = true }
        read.completion(.success(part))
        if part.isAtEnd { settle(.success(offset)) }
    }

    private func drain() {
        if waitingCount > 0 {
            let sent = buffer.withUnsafeBytes { send(UnsafeRawBufferPointer(rebasing: $0[taken...])) }
            guard let sent else { return settle(.failure(.readerGone)) }
            isBlocked = sent < waitingCount
            taken += sent
            compact(beyond: EngineLimits.sentChunkBytes)
        }
        guard waitingCount == 0, outcome == nil, let source else { return }
        settle(source.map { offset })
    }

    /// How many bytes have gone out; `nil` when nobody is there.
    private func send(_ bytes: UnsafeRawBufferPointer) -> Int? {
        switch socket?.send(bytes) {
        case .bytes(let count)?:
            if count > 0 { lastProgress = .now }
            offset += count
            return count
        case .peerGone?, nil:
            return nil
        }
    }

    private func take(_ count: Int) {
        taken += count
        offset += count
        lastProgress = .now
        compact(beyond: EngineLimits.bodyBufferBytes)
    }

    /// Gives back what has been taken: a reader that never catches up must not let it grow.
    private func compact(beyond limit: Int) {
        if taken == buffer.count {
            empty()
        } else if taken >= limit {
            buffer.removeFirst(taken)
            taken = 0
        }
    }

    private func empty() {
        taken = 0
        buffer.removeAll(keepingCapacity: source == nil)
    }

    private func settle(_ result: TransferPort.Delivery) {
        guard outcome == nil else { return }
        outcome = result
        // Closed before anybody is told: whoever is told finds the end of the stream.
        socket = nil
        (buffer, taken) = ([], 0)
        if let read, case .failure(let failure) = result { read.completion(.failure(failure)) }
        read = nil
        follower?(result)
        follower = nil
    }

    // MARK: Waiting

    /// The socket to be watched, for room to write or for a peer that goes away: with that comes the end of its input.
    var watched: (descriptor: Int32, forRoom: Bool, forInput: Bool)? {
        guard outcome == nil, let descriptor = socket?.descriptor else { return nil }
        return (descriptor, waitingCount > 0, !hasInputEnded)
    }

    /// The socket can be written to, or something else has happened to it.
    func act() {
        touched?()
        if socket?.isPeerGone == true { return settle(.failure(.readerGone)) }
        if !hasInputEnded {
            switch socket?.input {
            case .bytes: return settle(.failure(.readerWrites))
            case .end: hasInputEnded = true
            case .nothing, nil: break
            }
        }
        serve()
    }

    /// When it is given up, should nobody take what is there; `nil` while the server has the turn, or it is not yet decided
    /// who may take it.
    var deadline: ContinuousClock.Instant? {
        guard outcome == nil, follower != nil, waitingCount > 0 || source != nil, read == nil else { return nil }
        return lastProgress + .seconds(EngineLimits.readerIdleSeconds)
    }
}

extension TransferFailure {
    fileprivate static let bodyTaken = TransferFailure(.internalError, "Somebody else reads this body, or has read it.")
    static let readerGone = TransferFailure(.cancelled, "Whoever read the body has gone.")
    static let readerWrites = TransferFailure(
        .cancelled, "Whoever read the body has sent something, which is not for this.")
    static let readerIdle = TransferFailure(
        .timedOut, "Nobody has read the body for \(EngineLimits.readerIdleSeconds) seconds.")
}
