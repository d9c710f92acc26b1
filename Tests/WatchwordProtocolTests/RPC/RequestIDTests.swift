import JSONText
import Testing
import WatchwordProtocol

struct RequestIDTests {
    @Test(arguments: [
        "0", "1", "-1", "9223372036854775807", "-9223372036854775808", "null", #""""#, #""1""#, #""é\u0000\"""#,
    ])
    func anIdIsWrittenAsItWasRead(text: String) throws {
        let json = try JSON.parse(text)
        #expect(RequestID(json)?.json == json)
    }

    @Test(arguments: ["1.0", "0.5", "true", "false", "[]", "{}", "[1]"])
    func otherValuesAreNotIds(text: String) throws {
        #expect(try RequestID(JSON.parse(text)) == nil)
    }

    @Test("Rule P4: the type is part of an id")
    func theTypeIsPartOfIt() {
        let ids: Set<RequestID> = [.integer(1), .string("1"), .null, .string(""), .string("null"), .integer(0)]
        #expect(ids.count == 6)
    }

    @Test func stringsCompareByteForByte() {
        #expect(RequestID.string("\u{E9}") != .string("e\u{301}"))
    }
}
