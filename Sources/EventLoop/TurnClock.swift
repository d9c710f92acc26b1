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
