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

/// Limits the rate of one direction of a transfer, in bytes per second, with 250 ms of burst credit.
///
/// libcurl 7.88.1 does not enforce its own limits exactly enough: of fifty concurrent transfers that should have taken four
/// seconds, one took an eighth of a second.
struct RateLimiter {
    private static let grace = Duration.milliseconds(250)

    private let bytesPerSecond: Int
    /// When the next byte is allowed.
    private var next: ContinuousClock.Instant

    init(bytesPerSecond: Int, now: ContinuousClock.Instant) {
        self.bytesPerSecond = bytesPerSecond
        next = now
    }

    /// The end of the current pause; `nil` if bytes are allowed now.
    func pause(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? { next > now ? next : nil }

    /// Counts `count` transferred bytes. Time without transfers gives no credit beyond the burst.
    mutating func record(_ count: Int, at now: ContinuousClock.Instant) {
        next = max(next, now - Self.grace) + .seconds(Double(count) / Double(bytesPerSecond))
    }
}
