internal import WatchwordCore

/// A request's body that the client sends through a socket, with a copy in case it has to be sent again.
///
/// Used by one transfer at a time, on the engine's loop only.
final class BodySource {
    enum Part: Equatable {
        case bytes(Int)
        /// No bytes are available yet.
        case wait
        case end
        /// The body ended early, or the copy cannot be read.
        case broken
    }

    /// The announced size in bytes; `nil` if unknown.
    let size: Int?
    private let storesCopy: Bool
    private var copy: BodyCopy
    private var socket: BodySocket?
    private var hasEnded = false
    /// Whether the writer closed its socket, instead of only shutting down its writing side to mark the end.
    private var isCutOff = false
    /// The number of bytes received from the socket.
    private var received = 0
    /// The number of bytes that the current transfer has read.
    private var offset = 0
    /// Whether libcurl was told to pause.
    var isPaused = false
    private var lastProgress = ContinuousClock.now

    /// - Parameters:
    ///   - memory: the quota for a copy in memory; `nil` for none.
    ///   - disk: the quota for a copy in a file; `nil` for none.
    ///   - memoryBytes: the largest copy in memory; a larger one is in a file.
    init(
        size: Int?, storesCopy: Bool, memory: Quota? = nil, disk: Quota? = nil,
        memoryBytes: Int = EngineLimits.bodyCopyMemoryBytes
    ) {
        self.size = size
        self.storesCopy = storesCopy
        copy = BodyCopy(memoryBytes: memoryBytes, memory: memory, disk: disk)
        if let size { copy.expect(size) }
    }

    func attach(_ socket: consuming BodySocket) {
        lastProgress = .now
        if self.socket == nil && !hasEnded { self.socket = consume socket }
    }

    /// Makes the next transfer start at the beginning. Returns `false` if the bytes that were sent were not copied.
    func rewind() -> Bool {
        isPaused = false
        guard state != .spent else { return false }
        offset = 0
        return true
    }

    /// Whether the body can be sent again.
    var state: RequestBodyState {
        if received == 0 { return .untouched }
        return storesCopy && !copy.isLost && copy.count == received ? .copied : .spent
    }

    /// Reads the next bytes of the body. Never returns more than the announced size: further bytes on the connection would be
    /// taken for another request.
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
            if storesCopy { copy.append(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
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

    /// The socket to watch while paused.
    var watched: Int32? { isPaused ? socket?.descriptor : nil }

    /// The time at which the transfer fails if no bytes are received; `nil` unless paused.
    var deadline: ContinuousClock.Instant? {
        isPaused ? lastProgress + .seconds(EngineLimits.readerIdleSeconds) : nil
    }

    /// The error message for a body that ended with `.broken`.
    var problem: String {
        if isCutOff && size == nil { return "the writer of the request's body closed its connection before the end" }
        guard let size, received < size else { return "cannot read the stored copy of the request's body" }
        return "the request's body ended after \(received) of \(size) bytes"
    }
}
