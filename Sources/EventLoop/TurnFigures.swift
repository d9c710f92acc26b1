/// How long the turns of a loop have taken.
public struct TurnFigures: Sendable, Equatable {
    /// Upper bounds, in milliseconds, of all classes but the last, which has none.
    public static let boundsMilliseconds = [1, 2, 5, 10, 50]

    /// How many turns there were in each class.
    public private(set) var counts = [Int](repeating: 0, count: boundsMilliseconds.count + 1)
    public private(set) var longest = Duration.zero

    mutating func note(_ duration: Duration) {
        let index = Self.boundsMilliseconds.firstIndex { duration < .milliseconds($0) }
        counts[index ?? counts.count - 1] += 1
        if duration > longest { longest = duration }
    }
}
