internal import EventLoop
internal import WatchwordCore
internal import WatchwordProtocol

/// The start time of a transfer, and the rate limits of its bodies.
struct TransferTiming {
    let start = ContinuousClock.now
    private var down: RateLimiter?
    private var up: RateLimiter?
    /// The time at which the transfer has to be resumed; `nil` if no rate limit has paused it.
    var pausedUntil: ContinuousClock.Instant?
    var resuming: LoopTimer?
    /// Ends the wait for the body of a challenge or a redirect.
    var waiting: LoopTimer?

    init(_ request: SharedRequest) {
        down = request.options.maxBytesPerSecond.map { RateLimiter(bytesPerSecond: $0, now: start) }
        up = down
    }

    mutating func pausesDownload() -> Bool { waits(down) }

    mutating func pausesUpload() -> Bool { waits(up) }

    mutating func recordDownload(_ count: Int) { down?.record(count, at: .now) }

    mutating func recordUpload(_ count: Int) { up?.record(count, at: .now) }

    private mutating func waits(_ pace: RateLimiter?) -> Bool {
        guard let end = pace?.pause(at: .now) else { return false }
        pausedUntil = min(pausedUntil ?? end, end)
        return true
    }

    func elapsed() -> Duration { start.duration(to: .now) }
}
