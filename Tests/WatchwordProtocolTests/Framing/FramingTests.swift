import Testing
import WatchwordProtocol

struct FramingTests {
    @Test(arguments: [("{}", "{}\n"), ("", "\n"), (#"{"a":"é"}"#, "{\"a\":\"é\"}\n")])
    func aLineEndsWithOneLF(message: String, framed: String) {
        #expect(Framing.lines.frame(Array(message.utf8)) == Array(framed.utf8))
    }

    @Test(arguments: [
        ("{}", "Content-Length: 2\r\n\r\n{}"), ("", "Content-Length: 0\r\n\r\n"),
        (#"{"a":"é"}"#, "Content-Length: 10\r\n\r\n{\"a\":\"é\"}"),
    ])
    func theHeaderCountsBytes(message: String, framed: String) {
        #expect(Framing.headers.frame(Array(message.utf8)) == Array(framed.utf8))
    }

    @Test(arguments: [Framing.lines, .headers])
    func whatIsFramedIsReadBack(framing: Framing) {
        let messages = ["{}", #"{"text":"Content-Length: 3"}"#, "[1,\"é𝄞\"]"]
        let stream = messages.flatMap { framing.frame(Array($0.utf8)) }
        #expect(FrameRecording(of: [stream]) == FrameRecording(messages, framing: framing))
    }

    @Test(arguments: [
        FramingFailure.unknownFraming, .headerTooLarge, .malformedHeader, .noContentLength,
    ])
    func failuresSayWhatIsExpected(failure: FramingFailure) {
        #expect(failure.description.contains("header"))
        #expect(failure.description.split(separator: " ").count >= 8)
    }
}
