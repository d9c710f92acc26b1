import Glibc
import Testing
import WatchwordProtocol

struct FrameDecoderLimitTests {
    private static let limit = 64

    /// A message of `count` bytes.
    private func message(_ count: Int) -> String { "[\"" + String(repeating: "x", count: count - 4) + "\"]" }

    /// The stream whole, byte by byte, and in pieces of seven.
    private func recordings(of stream: [UInt8]) -> [FrameRecording] {
        [stream.count, 1, 7].map {
            FrameRecording(of: pieces(stream, of: $0), maxMessageBytes: Self.limit)
        }
    }

    @Test(arguments: [Framing.lines, .headers])
    func aMessageAtTheLimitIsRead(framing: Framing) {
        let messages = [message(Self.limit), "{}"]
        for recording in recordings(of: framing.stream(messages)) {
            #expect(recording == FrameRecording(messages, framing: framing))
        }
    }

    @Test(arguments: [Framing.lines, .headers], [1, 2, 3, 200, 10_000])
    func aLargerMessageIsSkippedAndTheNextIsRead(framing: Framing, excess: Int) {
        let stream = framing.stream(["{}", message(Self.limit + excess), "[1]", message(Self.limit + excess), "[2]"])
        for recording in recordings(of: stream) {
            #expect(recording.events == [.message("{}"), .tooLarge, .message("[1]"), .tooLarge, .message("[2]")])
            #expect(recording.failure == nil)
            #expect(recording.framing == framing)
        }
    }

    @Test func anOversizedMessageIsReportedBeforeItsEnd() {
        let line = FrameRecording(of: message(Self.limit + 1), maxMessageBytes: Self.limit)
        #expect(line.events == [.tooLarge])
        let header = FrameRecording(of: "Content-Length: 999999999999\r\n\r\n", maxMessageBytes: Self.limit)
        #expect(header.events == [.tooLarge])
    }

    @Test(arguments: [Framing.lines, .headers])
    func theBrokersOwnLimitIsReachedAndNotPassed(framing: Framing) {
        let largest = message(Limits.messageBytes)
        let atLimit = FrameRecording(of: pieces(framing.stream([largest, "{}"]), of: 4096))
        #expect(atLimit.events.count == 2)
        #expect(atLimit.events.first == .message(largest))
        let above = FrameRecording(of: pieces(framing.stream([message(Limits.messageBytes + 1), "{}"]), of: 4096))
        #expect(above.events == [.tooLarge, .message("{}")])
    }

    /// The decoder is between two messages (`nil`), in a message, or in one that it skips.
    @Test(
        arguments: [
            (
                ["Con", "tent-Length: 2\r\n", "\r\n", "{", "}", "Content-Length: 65\r\n\r\n", "x"],
                [3, 19, 0, 1, nil, 64, 64]
            ),
            (
                ["[", "]\n", " \n", "{\"", "\"}\n[", String(repeating: "x", count: 64), "x", "\n"],
                [1, nil, nil, 2, 1, 64, 64, nil]
            ),
        ] as [([String], [Int?])])
    func unfinishedBytesAreCountedAfterEachPiece(pieces: [String], expected: [Int?]) throws {
        var decoder = FrameDecoder(maxMessageBytes: Self.limit)
        var found: [Int?] = []
        for piece in pieces {
            try Array(piece.utf8).withUnsafeBytes { try decoder.feed($0) { _ in } }
            found.append(decoder.unfinishedCount)
        }
        #expect(found == expected)
    }

    private func pieces(_ stream: [UInt8], of size: Int) -> [[UInt8]] {
        stride(from: 0, to: stream.count, by: size).map { Array(stream[$0..<min($0 + size, stream.count)]) }
    }

    /// 64 times as many pieces of the same bytes cost little more, unless the decoder scans earlier pieces again.
    @Test(arguments: [Framing.lines, .headers])
    func theCostDoesNotGrowWithTheSquareOfThePieces(framing: Framing) {
        let stream = framing.stream([message(Limits.messageBytes)])
        func cost(_ pieces: [[UInt8]]) -> Double {
            (0..<3).map { _ in threadSeconds { #expect(FrameRecording(of: pieces).events.count == 1) } }.min() ?? 0
        }
        let few = cost(pieces(stream, of: 256 << 10))
        let many = cost(pieces(stream, of: 4 << 10))
        #expect(many < few * 5)
    }

    /// Processor time of this thread alone, so that other tests do not count.
    private func threadSeconds(_ body: () -> Void) -> Double {
        func now() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }
        let start = now()
        body()
        return now() - start
    }
}
