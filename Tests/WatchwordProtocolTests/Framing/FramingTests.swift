import JSONText
import Testing
import WatchwordProtocol

struct FramingTests {
    private static let messages: [JSON] = [[:], ["text": "é𝄞\n"], [["Content-Length", 3], .null]]

    @Test(arguments: [Framing.lines, .headers])
    func framesTheCompactText(framing: Framing) {
        for message in Self.messages {
            #expect(framing.frame(message) == framing.stream([message.text]))
        }
    }

    @Test(arguments: [Framing.lines, .headers])
    func framedMessagesAreReadBack(framing: Framing) {
        let stream = Self.messages.flatMap { framing.frame($0) }
        #expect(FrameRecording(of: [stream]) == FrameRecording(Self.messages.map(\.text), framing: framing))
    }

    @Test(arguments: [
        FramingFailure.unknownFraming, .headerTooLarge, .malformedHeader, .noContentLength,
    ])
    func failuresNameTheExpectedInput(failure: FramingFailure) {
        #expect(failure.description.contains("header"))
        #expect(failure.description.split(separator: " ").count >= 8)
    }
}
