/// Limits how often the broker writes a line of its own log: a peer, a server or a file must not be able to fill the disk. Lines
/// with the same message are the same line, whatever they are about.
///
/// All times are monotonic.
public struct LogLimiter: Sendable {
    private struct Line {
        /// The lines that may be written at `since`; one more for each further interval.
        var room: Int
        var since: Duration
        var leftOut = 0
    }

    /// The number of equal lines that are written at once.
    public static let burst = 20
    /// The interval at which one more is written.
    public static let interval = Duration.seconds(10)
    private static let mostMessages = 256
    /// The limit of a message and of each value, in bytes.
    static let longestText = 4000

    private var lines: [String: Line] = [:]

    public init() {}

    /// Returns the text, or the beginning of a text that is too long.
    public static func short(_ text: String) -> String {
        let bytes = text.utf8
        guard bytes.count > longestText else { return text }
        // A character may consist of any number of scalars, and a scalar of at most four bytes.
        var end = bytes.index(bytes.startIndex, offsetBy: longestText)
        while UTF8.isContinuation(bytes[end]) { bytes.formIndex(before: &end) }
        return String(Substring(text.unicodeScalars[..<end])) + "… (shortened)"
    }

    /// Returns the number of equal lines that were left out before this one; `nil` if this one is to be left out.
    public mutating func leftOut(before message: String, now: Duration) -> Int? {
        // The messages are texts of the broker, so the table is never full except by mistake.
        let message = lines[message] == nil && lines.count >= Self.mostMessages ? "" : message
        var line = lines[message] ?? Line(room: Self.burst, since: now)
        defer { lines[message] = line }
        let intervals = Int((now - line.since) / Self.interval)
        line.room = min(Self.burst, line.room + intervals)
        line.since += Self.interval * intervals
        guard line.room > 0 else {
            line.leftOut += 1
            return nil
        }
        line.room -= 1
        defer { line.leftOut = 0 }
        return line.leftOut
    }
}
