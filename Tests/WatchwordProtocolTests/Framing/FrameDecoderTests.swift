import Glibc
import Testing

@testable import WatchwordProtocol

struct FrameDecoderTests {
    /// One stream for each framing, with all variations that the protocol allows.
    static let streams: [(stream: String, expected: FrameRecording)] = [
        (
            " \t\r\n{\"a\":1}\n\n \t\r\n[\"Content-Length: 9\",\"é𝄞\"]\r\n42\nnot JSON\n",
            FrameRecording(["{\"a\":1}", "[\"Content-Length: 9\",\"é𝄞\"]\r", "42", "not JSON"], framing: .lines)
        ),
        (
            "\n Content-Length: 7\r\n\r\n{\"a\":1}content-length:0\r\n\r\nContent-Type: x; charset=utf-8\r\nCONTENT-LENGTH: \t10 "
                + "\r\nX: \r\n\r\n[\"\r\n\r\né\"]Content-Length: 002\r\n\r\n{}",
            FrameRecording(["{\"a\":1}", "[\"\r\n\r\né\"]", "{}"], framing: .headers)
        ),
    ]

    @Test(arguments: streams.indices)
    func theWholeStreamInOneRead(index: Int) {
        let (stream, expected) = Self.streams[index]
        #expect(FrameRecording(of: stream) == expected)
    }

    @Test(arguments: streams.indices)
    func splitInTwoAtEveryByte(index: Int) {
        let (stream, expected) = Self.streams[index]
        let bytes = Array(stream.utf8)
        for place in 0...bytes.count {
            let recording = FrameRecording(of: [Array(bytes[..<place]), Array(bytes[place...])])
            #expect(recording == expected, "split before byte \(place)")
        }
    }

    @Test(arguments: streams.indices)
    func oneByteAtATime(index: Int) {
        let (stream, expected) = Self.streams[index]
        #expect(FrameRecording(of: stream.utf8.map { [$0] }) == expected)
    }

    @Test(arguments: streams.indices, UInt16(1)...50)
    func cutAtRandom(index: Int, seed: UInt16) {
        let (stream, expected) = Self.streams[index]
        var state = [seed, 0x330E, 0x1234]
        var rest = Array(stream.utf8)[...]
        var pieces: [[UInt8]] = []
        while !rest.isEmpty {
            let count = nrand48(&state) % 20
            pieces.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        #expect(FrameRecording(of: pieces) == expected)
    }

    @Test(arguments: [
        ("{", Framing.lines), ("[", .lines), (" \r\n\t{", .lines), ("Content-", .headers), ("cOnTeNt-", .headers),
        ("\n\nContent-Type: x", .headers), ("Content", nil), ("", nil), (" \n", nil), ("C", nil),
    ])
    func framingShowsAsSoonAsItCan(text: String, framing: Framing?) {
        let recording = FrameRecording(of: text)
        #expect(recording.framing == framing)
        #expect(recording.failure == nil)
        #expect(FrameRecording(of: text.utf8.map { [$0] }) == recording)
    }

    @Test(arguments: [
        "GET / HTTP/1.1", "\"text\"", "1", "null", "x", "Contant", "Content Length", "}", "]", "\u{0}", "\u{FEFF}{}",
        "\u{B}{",
        "Content:", "  \nhello", "CC",
    ])
    func anyOtherBeginningIsRefused(text: String) {
        #expect(FrameRecording(of: text).failure == .unknownFraming)
        #expect(FrameRecording(of: text.utf8.map { [$0] }).failure == .unknownFraming)
    }

    @Test func theFramingDoesNotChange() {
        let recording = FrameRecording(of: "{}\nContent-Length: 2\r\n\r\n{}\n")
        #expect(recording == FrameRecording(["{}", "Content-Length: 2\r", "{}"], framing: .lines))
    }

    @Test func aLineWithoutItsEndIsNotAMessage() {
        #expect(FrameRecording(of: "{}") == FrameRecording([], framing: .lines))
        #expect(FrameRecording(of: "Content-Length: 2\r\n\r\n{") == FrameRecording([], framing: .headers))
    }

    @Test(arguments: ["{\"a\":1}\n", "Content-Length: 7\r\n\r\n{\"a\":1}"])
    func messagesBeforeAFailureAreDelivered(good: String) {
        let recording = FrameRecording(of: good + "Content-Bad\r\n\r\n{}\n")
        #expect(recording.events.first == .message("{\"a\":1}"))
        #expect(recording.failure == (recording.framing == .headers ? .malformedHeader : nil))
    }

    @Test func nothingOfAMessageStaysBehind() {
        let search = MemorySearch()
        var decoder = FrameDecoder()
        for framing in [Array("{\"p\":\"".utf8), Array("\"}".utf8)] {
            framing.withUnsafeBytes { bytes in try? decoder.feed(bytes) { _ in } }
            if framing.first == UInt8(ascii: "{") { try? decoder.feed(search.bytes) { _ in } }
        }
        #expect(search.copies() == 1)
        var messages = 0
        Array("\n".utf8).withUnsafeBytes { bytes in try? decoder.feed(bytes) { _ in messages += 1 } }
        #expect(messages == 1)
        #expect(search.copies() == 0)
    }
}
