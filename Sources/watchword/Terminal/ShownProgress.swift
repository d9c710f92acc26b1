/// The progress of one transfer. Times are seconds of a monotonic clock.
struct ShownProgress: Equatable {
    enum State: Equatable {
        case starting, sending, receiving
        /// A prompt about the transfer is open.
        case waitingForAnswer
        case waitingForRetry(seconds: Int)
        case ended(isComplete: Bool)
    }

    /// The period, in seconds, over which the speed is averaged.
    private static let speedWindow = 5.0

    var name: String
    var state = State.starting
    /// The bytes of the body transferred in the current direction, including the existing part of a resumed file.
    private(set) var bytes = 0
    var expected: Int?
    private var samples: [(time: Double, bytes: Int)] = []

    init(name: String) { self.name = name }

    mutating func record(_ bytes: Int, at time: Double) {
        self.bytes = bytes
        while let first = samples.first, samples.count > 1, first.time < time - Self.speedWindow {
            samples.removeFirst()
        }
        if let last = samples.last, time - last.time < 0.1 { return }
        samples.append((time, bytes))
    }

    /// Resets the counters for another direction or attempt.
    mutating func restart(_ state: State, bytes: Int = 0, expected: Int?) {
        (self.state, self.bytes, self.expected, samples) = (state, bytes, expected, [])
    }

    /// Returns the speed in bytes per second; `nil` while there are too few samples.
    func speed(at time: Double) -> Double? {
        guard let first = samples.first, time - first.time >= 0.2 else { return nil }
        return Double(bytes - first.bytes) / (time - first.time)
    }

    func secondsLeft(at time: Double) -> Int? {
        guard let expected, let speed = speed(at: time), speed > 0, expected >= bytes else { return nil }
        return Int((Double(expected - bytes) / speed).rounded(.up))
    }

    static func == (left: Self, right: Self) -> Bool {
        left.name == right.name && left.state == right.state && left.bytes == right.bytes
            && left.expected == right.expected
    }
}
