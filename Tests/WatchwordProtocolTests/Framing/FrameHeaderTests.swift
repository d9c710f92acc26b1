import Testing

@testable import WatchwordProtocol

struct FrameHeaderTests {
    private func section(ofBytes count: Int) -> String {
        let start = "Content-Length: 2\r\nX-Padding: "
        return start + String(repeating: "p", count: count - start.utf8.count - 4) + "\r\n\r\n"
    }

    @Test(arguments: [
        "Content-Length: 2", "content-length:2", "CONTENT-LENGTH:\t 2 \t", "Content-Length: 000000000002",
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2",
        "Content-Length: 2\r\nContent-Type: x",
        "X-First: x\r\nContent-Length: 2", "Content-Length: 2\r\nX-Empty:", "Content-Length: 2\r\nX: a:b:c",
        "Content-Length: 2\r\nContent-Lengthy: 7",
    ])
    func oneContentLengthInAnyOrderAndCase(header: String) {
        let stream = "Content-Length: 2\r\n\r\n[]" + header + "\r\n\r\n{}"
        #expect(FrameRecording(of: stream) == FrameRecording(["[]", "{}"], framing: .headers))
    }

    @Test(arguments: [
        ("Content-Type: x", FramingFailure.noContentLength), ("Content-Length:", .noContentLength),
        ("Content-Length: ", .noContentLength), ("Content-Length: x", .noContentLength),
        ("Content-Length: -1", .noContentLength), ("Content-Length: +2", .noContentLength),
        ("Content-Length: 2.0", .noContentLength), ("Content-Length: 0x2", .noContentLength),
        ("Content-Length: 2 2", .noContentLength), ("Content-Length: 2,2", .noContentLength),
        ("Content-Length: ２", .noContentLength), ("Content-Length: 2\u{301}", .noContentLength),
        ("Content-Length: 1000000000000", .noContentLength), ("Content-Length: 99999999999999999999", .noContentLength),
        ("Content-Length: 2\r\nContent-Length: 2", .noContentLength),
        ("Content-Length: 2\r\ncontent-length: 3", .noContentLength), ("Content-Length : 2", .noContentLength),
        ("Content-Length: 2\nX: y", .noContentLength), ("Content-Length: 2\rX: y", .noContentLength),
        ("Content-Length: 2\n", .noContentLength),
        ("Content-Length", .malformedHeader), ("Content-Length 2", .malformedHeader),
        ("Content-Length: 2\r\nfolded", .malformedHeader), ("Content-Length: 2\r\n: 2", .malformedHeader),
        ("Content-Length: 2\r\n\u{301}", .malformedHeader),
    ])
    func anyOtherSectionIsRefused(header: String, failure: FramingFailure) {
        let stream = header + "\r\n\r\n{}"
        #expect(FrameRecording(of: stream).failure == failure)
        #expect(FrameRecording(of: stream.utf8.map { [$0] }).failure == failure)
    }

    @Test func bytesThatAreNotUTF8AreOnlyAnotherField() {
        let stream = Array("Content-Length: 2\r\nX: ".utf8) + [0xFF, 0xC3] + Array("\r\n\r\n{}".utf8)
        #expect(FrameRecording(of: [stream]).events == [.message("{}")])
    }

    @Test func aSectionOfTheLargestSizeIsRead() {
        let stream = section(ofBytes: Limits.frameHeaderBytes) + "{}" + section(ofBytes: Limits.frameHeaderBytes) + "[]"
        #expect(FrameRecording(of: stream).events == [.message("{}"), .message("[]")])
        #expect(FrameRecording(of: stream.utf8.map { [$0] }).events == [.message("{}"), .message("[]")])
    }

    @Test func aLargerSectionIsRefused() {
        let stream = section(ofBytes: Limits.frameHeaderBytes + 1) + "{}"
        #expect(FrameRecording(of: stream).failure == .headerTooLarge)
        #expect(FrameRecording(of: stream.utf8.map { [$0] }).failure == .headerTooLarge)
    }

    @Test func aSectionThatNeverEndsIsRefusedAtTheLimit() {
        let endless = "Content-Length: 2\r\nX: " + String(repeating: "x", count: Limits.frameHeaderBytes)
        let atLimit = Array(endless.utf8.prefix(Limits.frameHeaderBytes))
        #expect(FrameRecording(of: [atLimit.dropLast()]).failure == nil)
        #expect(FrameRecording(of: [atLimit]).failure == .headerTooLarge)
    }

    @Test(arguments: [
        ("\r\n\r\n", 4), ("A: b\r\n\r\nrest", 8), ("A: b\r\n\r", nil), ("A: b\n\n", nil), ("", nil), ("\r\n\r", nil),
    ])
    func theSectionEndsWithAnEmptyLine(text: String, length: Int?) {
        #expect(Array(text.utf8).withUnsafeBytes { FrameHeader.length(of: $0) } == length)
    }
}
