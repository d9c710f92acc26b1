/// A histogram of the durations of a loop's turns.
public struct TurnFigures: Sendable, Equatable {
    /// The upper bounds of the buckets in milliseconds; one more bucket without a bound follows.
    public static let boundsMilliseconds = [1, 2, 5, 10, 50]

    /// The number of turns in each bucket.
    public private(set) var counts = [Int](repeating: 0, count: boundsMilliseconds.count + 1)
    public private(set) var longest = Duration.zero

    mutating func record(_ duration: Duration) {
        let index = Self.boundsMilliseconds.firstIndex { duration < .milliseconds($0) }
        counts[index ?? counts.count - 1] += 1
        if duration > longest { longest = duration }
    }
}

/// Measures the turns of a loop.
struct TurnClock {
    /// When the current turn began.
    private(set) var start = ContinuousClock.now
    /// When the previous turn ended.
    private(set) var lastEnd = ContinuousClock.now
    private(set) var figures = TurnFigures()

    mutating func begin() { start = .now }

    mutating func end() {
        lastEnd = .now
        figures.record(lastEnd - start)
    }
}
