import JSONText
import Testing

struct JSONParsingTests {
    @Test(arguments: [("[", "]"), (#"{"a":"#, "}")])
    func depthIsReachedAndNotPassed(open: String, close: String) throws {
        func nested(_ depth: Int) -> String {
            String(repeating: open, count: depth) + (open == "[" ? "" : "0") + String(repeating: close, count: depth)
        }
        _ = try JSON.parse(nested(64), depth: 64)
        #expect(throws: JSONFailure.tooDeep(limit: 64)) { try JSON.parse(nested(65), depth: 64) }
    }

    @Test func closedArraysDoNotCountAsDepth() throws {
        _ = try JSON.parse("[[],[],[[]],{},{}]", depth: 3)
        #expect(throws: JSONFailure.tooDeep(limit: 2)) { try JSON.parse("[[],[],[[]],{},{}]", depth: 2) }
    }

    @Test func aDepthThatIsNeverClosedIsFoundFirst() {
        let opening = String(repeating: "[", count: 100_000)
        #expect(throws: JSONFailure.tooDeep(limit: 64)) { try JSON.parse(opening, values: 1_000_000) }
    }

    @Test(arguments: ["[1,2,3]", #"{"a":1,"b":2,"c":3}"#, #"[{"a":1},2]"#, #"[["x"],true]"#])
    func valuesAreCountedExactly(text: String) throws {
        _ = try JSON.parse(text, values: 4)
        #expect(throws: JSONFailure.tooManyValues(limit: 3)) { try JSON.parse(text, values: 3) }
    }

    @Test func emptyContainersDoNotSlipPastTheLimit() throws {
        let text = "[" + Array(repeating: "[]", count: 100).joined(separator: ",") + "]"
        _ = try JSON.parse(text, values: 202)
        #expect(throws: JSONFailure.tooManyValues(limit: 100)) { try JSON.parse(text, values: 100) }
    }

    @Test func punctuationInsideStringsIsNotCounted() throws {
        let text = #"["[[[[{{{{,,,,\"[[[[,,,,\\",0]"#
        #expect(try JSON.parse(text, depth: 1, values: 3).elements?.first?.string == #"[[[[{{{{,,,,"[[[[,,,,\"#)
    }

    /// "␀" stands for the byte.
    @Test(arguments: [
        "␀", "1␀", "␀1", "[1␀]", #"{"a":1}␀{"b":2}"#, #""a␀b""#, #""a␀"#, #"{"a␀":1}"#, #""a\␀""#, #""\\␀""#, #""\"␀""#,
    ])
    func aNULByteIsRefusedWhereverItStands(text: String) {
        #expect(throws: JSONFailure.containsNUL) { try JSON.parse(text.replacing("␀", with: "\u{0}")) }
    }

    @Test func anEscapedNULIsACharacterOfAValueButNotOfAName() throws {
        #expect(try JSON.parse(#""a\u0000b""#).string == "a\u{0}b")
        #expect(throws: JSONFailure.self) { try JSON.parse(#"{"a\u0000b":1}"#) }
    }

    @Test(arguments: [
        #"{"a":1,"a":2}"#, #"{"a":1,"b":2,"a":1}"#, #"[{"x":{"a":1,"a":1}}]"#, #"{"a":1,"\u0061":2}"#, #"{"":1,"":1}"#,
    ])
    func twoMembersOfOneNameAreRefused(text: String) {
        let failure = #expect(throws: JSONFailure.self) { try JSON.parse(text) }
        guard case .duplicateMember(let offset)? = failure else {
            Issue.record("refused as \(String(describing: failure))")
            return
        }
        #expect((1...text.utf8.count).contains(offset))
    }

    @Test func theSameNameInTwoObjectsIsFine() throws {
        #expect(try JSON.parse(#"[{"a":1},{"a":{"a":2}}]"#).elements?[1]["a"]?["a"]?.integer == 2)
    }

    @Test(arguments: [
        ("9223372036854775807", Int.max), ("-9223372036854775808", Int.min), ("-0", 0), ("2147483648", 2_147_483_648),
    ])
    func integersReachSixtyFourBits(text: String, value: Int) throws {
        #expect(try JSON.parse(text).integer == value)
    }

    @Test(arguments: [
        "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e400", "-1e400",
        "[1,99999999999999999999]",
    ])
    func largerNumbersAreRefused(text: String) {
        let failure = #expect(throws: JSONFailure.self) { try JSON.parse(text) }
        guard case .numberTooLarge? = failure else {
            Issue.record("refused as \(String(describing: failure))")
            return
        }
    }

    @Test func numbersTooSmallToTellFromZeroAreZero() throws {
        #expect(try JSON.parse("1e-400").number == 0)
    }

    @Test(arguments: [
        ("[1 2]", 4), ("", 0), (#"{"a":}"#, 6), (#"{"é":tru}"#, 9),
    ])
    func syntaxFailuresNameTheByte(text: String, offset: Int) {
        #expect(throws: JSONFailure.syntax(offset: offset)) { try JSON.parse(text) }
    }

    @Test(arguments: [
        #"{"password":"hunter2","password":"hunter2"}"#, #"{"password":"hunter2""#, #"{"password":hunter2}"#,
        #"{"password":"hunter2\q"}"#, #"{"hunter2":1e999}"#, #"{"password":"hunter2"} hunter2"#, "[[[\"hunter2\"]]]",
        #"["hunter2",1,2,3,4,5,6,7,8,9]"#, "[\"hunter2\u{0}\"]", #"["hunter2 \ud800"]"#,
    ])
    func failuresNeverQuoteTheText(text: String) throws {
        let failure = try #require(throws: JSONFailure.self) { try JSON.parse(text, depth: 2, values: 8) }
        for told in ["\(failure)", String(reflecting: failure), failure.description] {
            #expect(!told.contains("hunter2"))
        }
    }

    @Test(arguments: [
        JSONFailure.containsNUL, .tooDeep(limit: 1), .tooManyValues(limit: 1), .notUTF8(offset: 1),
        .duplicateMember(offset: 1),
        .numberTooLarge(offset: 1), .syntax(offset: 1),
    ])
    func eachFailureHasADescription(failure: JSONFailure) {
        #expect(failure.description.split(separator: " ").count >= 5)
    }

    @Test func anEmptyRegionIsASyntaxError() {
        let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
        #expect(throws: JSONFailure.syntax(offset: 0)) {
            try JSON.parse(nothing, limits: JSONLimits(depth: 1, values: 1))
        }
    }
}
