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
