import Testing

@testable import WatchwordCore

/// Nobody can fill the disk with the broker's log.
@Suite struct LogLimiterTests {
    /// Returns how many of `count` equal lines are written, and how many of the others these mention.
    private func write(_ message: String, _ count: Int, at seconds: Int, _ limiter: inout LogLimiter) -> [Int] {
        (0..<count).compactMap { _ in limiter.leftOut(before: message, now: .seconds(seconds)) }
    }

    @Test func equalLinesAreWrittenOnceInTenSeconds() {
        var limiter = LogLimiter()
        #expect(write("a", 1000, at: 0, &limiter) == Array(repeating: 0, count: LogLimiter.burst))
        #expect(write("a", 1000, at: 9, &limiter).isEmpty)
        #expect(write("a", 1000, at: 10, &limiter) == [2000 - LogLimiter.burst])
        #expect(write("a", 1000, at: 19, &limiter).isEmpty)
        #expect(write("a", 1, at: 20, &limiter) == [1999])
        #expect(write("a", 1000, at: 1000, &limiter).count == LogLimiter.burst)
    }

    @Test func eachMessageHasItsOwnLimit() {
        var limiter = LogLimiter()
        _ = write("a", 1000, at: 0, &limiter)
        #expect(write("b", 1, at: 0, &limiter) == [0])
    }

    @Test(arguments: ["x", "é", "€", "🔑", "e\u{301}", "x" + String(repeating: "\u{301}", count: 5000)])
    func longTextsAreCutByBytes(part: String) {
        let text = String(repeating: part, count: 5000)
        let short = LogLimiter.short(text)
        let end = "… (shortened)"
        #expect(short.hasSuffix(end) && !short.contains("\u{fffd}"))
        let kept = short.utf8.dropLast(end.utf8.count)
        #expect((LogLimiter.longestText - 3...LogLimiter.longestText).contains(kept.count))
        #expect(text.utf8.starts(with: kept))
        let whole = String(repeating: "€", count: LogLimiter.longestText / 3)
        #expect(LogLimiter.short(whole) == whole)
    }

    @Test func theTableIsBounded() {
        var limiter = LogLimiter()
        let written = (0..<10_000).filter { limiter.leftOut(before: "\($0)", now: .zero) != nil }
        #expect(written.count == 256 + LogLimiter.burst)
    }
}
