/// How fast the bytes of one direction of a transfer may come: so many in a second, seen over a quarter of it.
///
/// libcurl 7.88.1 has limits of its own; of fifty transfers at once that were to take four seconds it let one pass in an eighth of
/// one.
struct Pace {
    private static let grace = Duration.milliseconds(250)

    private let bytesPerSecond: Int
    /// When the next byte may come.
    private var next: ContinuousClock.Instant

    init(bytesPerSecond: Int, now: ContinuousClock.Instant) {
        self.bytesPerSecond = bytesPerSecond
        next = now
    }

    /// Until when nothing may come; `nil` when something may.
    func pause(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? { next > now ? next : nil }

    /// What was not used before does not add up.
    mutating func note(_ count: Int, at now: ContinuousClock.Instant) {
        next = max(next, now - Self.grace) + .seconds(Double(count) / Double(bytesPerSecond))
    }
}
