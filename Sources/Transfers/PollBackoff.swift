/// Poll backoff (10 ms to 1 s) that works around stalled HTTP/2 streams in libcurl 7.88.1.
///
/// Sometimes libcurl does not process the data of a stream, and waits for a socket on which nothing more arrives: in
/// bursts of a hundred transfers, one in fifty stalled until the next timer, half a minute later. Calling libcurl again for
/// the socket continues the stream.
struct PollBackoff {
    private static let shortest: Int32 = 10
    private static let longest: Int32 = 1000

    private var rounds: Int32 = 0
    private var hasEvent = false

    /// The current interval, in milliseconds.
    var limit: Int32 { min(Self.shortest << rounds, Self.longest) }

    mutating func recordEvent() { hasEvent = true }

    /// Ends the current interval and starts the next. Returns whether it passed without an event.
    mutating func sleepEnded() -> Bool {
        defer { hasEvent = false }
        rounds = hasEvent ? 0 : min(rounds + 1, 7)
        return !hasEvent
    }
}
