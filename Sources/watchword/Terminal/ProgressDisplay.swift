import Glibc

/// Draws progress bars of all running transfers on the terminal, at most five times a second.
final class ProgressDisplay {
    /// The shortest time between two drawings, in seconds.
    private static let interval = 0.2

    private let isBarOnly: Bool
    /// Whether the terminal supports moving the cursor up.
    private let movesCursor: Bool
    private var lastDrawn: Double

    /// Returns `nil` if standard error is not a terminal.
    init?(isBarOnly: Bool, now: Double) {
        guard isatty(STDERR_FILENO) == 1 else { return nil }
        let kind = getenv("TERM").map { String(cString: $0) } ?? "dumb"
        self.isBarOnly = isBarOnly
        movesCursor = kind != "dumb"
        // A transfer shorter than one interval needs no bar.
        lastDrawn = now
    }

    func draw(_ transfers: [ShownProgress], now: Double) {
        guard now - lastDrawn >= Self.interval, !transfers.isEmpty else { return }
        lastDrawn = now
        var size = winsize()
        let hasSize = ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        let width = hasSize ? Int(size.ws_col) - 1 : 79
        let height = hasSize && movesCursor ? max(1, Int(size.ws_row) - 1) : movesCursor ? 23 : 1
        let shown =
            transfers.count <= height ? transfers : Array(transfers.prefix(height - 1)) + [rest(transfers, height - 1)]
        StandardError.show(bars: shown.map { ProgressLine.text($0, at: now, width: width, isBarOnly: isBarOnly) })
    }

    /// Returns one line that sums up the transfers for which the terminal has no room.
    private func rest(_ transfers: [ShownProgress], _ count: Int) -> ShownProgress {
        let others = transfers.dropFirst(count)
        var sum = ShownProgress(name: "\(others.count) \(count > 0 ? "more" : "files")")
        sum.restart(.receiving, expected: nil)
        sum.record(others.reduce(0) { $0 + $1.bytes }, at: lastDrawn)
        return sum
    }

    /// Replaces the bars with one line, before a prompt about `transfer`.
    func announce(_ transfer: ShownProgress) {
        var transfer = transfer
        transfer.state = .waitingForAnswer
        StandardError.write(line: ProgressLine.text(transfer, at: lastDrawn, width: 79))
    }
}

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
