internal import WatchwordCore

/// The body of a request that comes through a socket, on its way to libcurl; and a copy of it, should it have to be sent again.
///
/// Used by one transfer after the other. Lives on the engine's loop.
final class BodySource {
    enum Part: Equatable {
        case bytes(Int)
        /// Nothing has come yet.
        case wait
        case end
        /// It ended before it was whole, or the copy cannot be read.
        case broken
    }

    /// `nil` when nobody knows.
    let size: Int?
    private let keepsCopy: Bool
    private var copy: BodyCopy
    private var socket: BodySocket?
    private var hasEnded = false
    /// Whoever wrote it has gone, and has not said that this was all.
    private var isCutOff = false
    /// What has come through the socket.
    private var received = 0
    /// What this transfer has got.
    private var offset = 0
    /// libcurl was told to wait.
    var isPaused = false
    private var lastProgress = ContinuousClock.now

    /// - Parameters:
    ///   - memory: the quota for a copy in memory, and `disk` for one in a file; `nil` for none.
    ///   - memoryBytes: a larger copy is in a file.
    init(
        size: Int?, keepsCopy: Bool, memory: Allowance? = nil, disk: Allowance? = nil,
        memoryBytes: Int = EngineLimits.bodyCopyMemoryBytes
    ) {
        self.size = size
        self.keepsCopy = keepsCopy
        copy = BodyCopy(memoryBytes: memoryBytes, memory: memory, disk: disk)
        if let size { copy.expect(size) }
    }

    func attach(_ socket: consuming BodySocket) {
        lastProgress = .now
        if self.socket == nil && !hasEnded { self.socket = consume socket }
    }

    /// The next transfer begins at the start. `false` when what was sent before is gone.
    func rewind() -> Bool {
        isPaused = false
        guard state != .spent else { return false }
        offset = 0
        return true
    }

    /// Whether it can be sent once more.
    var state: RequestBodyState {
        if received == 0 { return .untouched }
        return keepsCopy && !copy.isLost && copy.count == received ? .copied : .spent
    }

    /// Never more than was announced: what follows on the connection would be taken for another request.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Part {
        lastProgress = .now
        isPaused = false
        if offset < received {
            let count = copy.read(from: offset, into: buffer)
            offset += count
            return count > 0 ? .bytes(count) : .broken
        }
        if hasEnded || received == size { return end }
        let room = min(buffer.count, size.map { $0 - received } ?? buffer.count)
        guard let result = socket?.receive(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<room])) else {
            return pause()
        }
        switch result {
        case .bytes(let count):
            if keepsCopy { copy.append(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
            received += count
            offset += count
            return .bytes(count)
        case .nothing:
            return pause()
        case .end:
            hasEnded = true
            isCutOff = socket?.isPeerGone ?? true
            socket = nil
            return end
        }
    }

    private func pause() -> Part {
        isPaused = true
        return .wait
    }

    private var end: Part { size.map { $0 == received } ?? !isCutOff ? .end : .broken }

    // MARK: Waiting

    /// The socket to be watched.
    var watched: Int32? { isPaused ? socket?.descriptor : nil }

    /// When it is given up, should nothing come.
    var deadline: ContinuousClock.Instant? {
        isPaused ? lastProgress + .seconds(EngineLimits.readerIdleSeconds) : nil
    }

    /// What is wrong with a body that is broken.
    var problem: String {
        if isCutOff && size == nil { return "Whoever wrote the request's body has gone before its end." }
        guard let size, received < size else { return "What was kept of the request's body cannot be read." }
        return "The request's body ended after \(received) of \(size) bytes."
    }
}
