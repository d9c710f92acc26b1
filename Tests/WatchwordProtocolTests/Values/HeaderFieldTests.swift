import JSONText
import Testing
import WatchwordProtocol

struct HeaderFieldTests {
    private let fields = [
        HeaderField("WWW-Authenticate", "Basic realm=\"a\""), HeaderField("Date", "now"),
        HeaderField("www-authenticate", "Digest realm=\"b\""),
    ]

    @Test(arguments: [
        ("WWW-Authenticate", true), ("www-AUTHENTICATE", true), ("WWW-Authenticate ", false),
        ("WWW_Authenticate", false),
        ("", false),
    ])
    func namesCompareWithoutRegardToCase(name: String, same: Bool) {
        #expect(fields[0].isNamed(name) == same)
    }

    @Test(arguments: [
        ("\u{212A}", "k"), ("\u{E9}", "\u{C9}"), ("\u{E9}", "e\u{301}"), ("@", "`"), ("[", "{"),
        ("a\u{323}\u{307}", "a\u{307}\u{323}"),
    ])
    func onlyTheLettersOfASCIIHaveTwoCases(left: String, right: String) {
        #expect(!left.equalsIgnoringASCIICase(right))
    }

    @Test func smallLettersAreMadeOfAToZAlone() {
        #expect("AZ@[`{09É".asciiLowercased == "az@[`{09É")
        #expect((0...255).filter { UInt8($0).asciiLowercased != UInt8($0) } == Array(0x41...0x5A))
    }

    @Test func valuesKeepTheirOrder() {
        #expect(fields.values(of: "WWW-AUTHENTICATE") == ["Basic realm=\"a\"", "Digest realm=\"b\""])
        #expect(fields.firstValue(of: "www-authenticate") == "Basic realm=\"a\"")
        #expect(fields.values(of: "Cookie").isEmpty)
        #expect(fields.firstValue(of: "Cookie") == nil)
    }

    @Test func areWrittenAsAListOfPairs() {
        #expect([HeaderField("A", "1"), HeaderField("a", "")].json.text == #"[["A","1"],["a",""]]"#)
        #expect([HeaderField]().json.text == "[]")
    }

    // MARK: HeaderBlock

    @Test func aBlockFindsItsFields() {
        var block = HeaderBlock(fields)
        #expect(block.values(of: "WWW-authenticate") == ["Basic realm=\"a\"", "Digest realm=\"b\""])
        #expect(block.firstValue(of: "date") == "now" && block.contains("DATE") && !block.contains("Dat"))
        #expect(block.firstValue(of: "Dates") == nil && block.values(of: "") == [] && Array(block) == fields)
        Array("now".utf8).withUnsafeBytes { block.continueLast(with: $0) }
        #expect(block.last?.value == "Digest realm=\"b\" now" && block.firstValue(of: "Date") == "now")
        var none = HeaderBlock()
        Array("x".utf8).withUnsafeBytes { none.continueLast(with: $0) }
        #expect(none.isEmpty && none.values(of: "x") == [])
    }
}
