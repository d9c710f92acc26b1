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
