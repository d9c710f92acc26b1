import Testing
import WatchwordProtocol

@testable import Configuration

@Suite struct FileBytesTests {
    private static let text = "[limits]\nsession-idle-s = 5\n\n[fetch]\ndeny = [\n\"a.example\",\n]\n"

    private var expected: Settings? {
        var settings = Settings()
        settings.sessionIdle = .seconds(5)
        settings.deniedHosts = [try? HostPattern("a.example")].compactMap(\.self)
        return settings
    }

    @Test func takesLinesThatEndWithCRLF() throws {
        let text = Self.text.utf8.flatMap { $0 == 0x0A ? [0x0D, 0x0A] : [$0] }
        #expect(try SettingsFile.parse(text).get() == expected)
        #expect(problems("[limits]\r\n\r\nsession-idle-s = 0\r\n").map(\.line) == [3])
        #expect(problems("[limits]\r\n\r\nsession-idle-s\r\n").map(\.line) == [3])
    }

    @Test func takesAByteOrderMarkAtTheBeginningOnly() {
        #expect(settings("\u{FEFF}\(Self.text)") == expected)
        #expect(problems("[limits]\n\u{FEFF}session-idle-s = 1\n").map(\.line) == [2])
        #expect(problems("\u{FEFF}[limits]\nsession-idle-s = 0\n").map(\.line) == [2])
    }

    @Test(arguments: ["a\u{0}b = 1", "# \u{0}", "x = \"\u{0}\"", "x = '''\u{0}'''", "x = \"\\\u{0}\"", "\u{0}"])
    func refusesNULBytes(text: String) {
        let found = problems("# first\n\(text)\n")
        #expect(found.map(\.line) == [2])
        #expect(found.first?.text.contains("unexpected NUL byte") == true)
    }

    @Test func aNULByteInAnEscapeIsPartOfTheString() {
        #expect(problems("[fetch]\ndeny = [\"a.example\\u0000\"]").map(\.line) == [2])
        #expect(problems("[sharing]\nsession = \"user\\u0000\"").map(\.line) == [2])
    }

    @Test(arguments: [
        [0x23, 0xFF], [0x61, 0x3D, 0x22, 0xC3, 0x22], [0x23, 0xED, 0xA0, 0x80], [0x23, 0xC0, 0x80],
        [0x23, 0xF4, 0x90, 0x80],
        [0x23, 0xE2, 0x82],
    ])
    func refusesInvalidUTF8(bytes: [UInt8]) {
        #expect(problems([0x0A] + bytes).map(\.line) == [2])
    }

    @Test func invalidUTF8IsReportedWithItsLine() {
        let text = Array("[limits]\n\nsession-idle-s = 5\n# \n".utf8)
        for (place, byte) in text.enumerated() where byte == 0x0A {
            let line = 1 + text[..<place].count { $0 == 0x0A }
            #expect(problems(Array(text[..<place]) + [0xFF] + text[place...]).map(\.line) == [line])
        }
    }

    @Test func takesAtMostOneMebibyte() {
        let start = Array("session-idle-s = 5\n".utf8)
        let limits = Array("[limits]\n".utf8)
        let comment = [UInt8](repeating: 0x23, count: SettingsFile.largestSize - start.count - limits.count)
        let fits = limits + start + comment
        #expect(fits.count == 1 << 20)
        #expect(problems(fits) == [])
        let found = problems(fits + [0x23])
        #expect(found.map(\.line) == [nil])
        #expect(found.first?.text.hasPrefix("the file is larger than 1048576 bytes") == true)
        #expect(throws: TOMLDocument.SyntaxError.self) { try TOMLDocument.parse(fits + [0x23]) }
    }

    /// Without the checks, the parser would overflow the stack, or its result would take gigabytes.
    private static let costly = [
        "[" + String(repeating: "a.", count: 200_000) + "a]", String(repeating: "\"a\" . ", count: 100_000) + "a = 1",
        "x = " + String(repeating: "[", count: 500_000), "x = " + String(repeating: "{a=", count: 200_000),
        "[" + String(repeating: "k", count: 500_000) + "]\n" + (0..<40_000).map { "a\($0)=1\n" }.joined(),
    ]

    @Test(arguments: costly.indices)
    func costlyTextsAreProblems(index: Int) {
        let count = problems(Self.costly[index]).count
        #expect(count == 1)
    }

    @Test func dotsInStringsAndNumbersAreNotCountedAsKeyParts() {
        let host = Array(repeating: "a", count: 40).joined(separator: ".")
        let text = "[fetch]\n# \(host)\ndeny = [\"\(host)\", '\(host)', \"\"\"\(host)\\\n  \"\"\", '''\(host)''']\n"
        #expect(settings(text)?.deniedHosts.count == 4)
        #expect(problems("x = [" + String(repeating: "1.5, ", count: 40) + "]").map(\.key) == ["x"])
        #expect(problems("\(String(repeating: "a.", count: 15))a = 1").map(\.key) == ["a"])
        #expect(problems("\(String(repeating: "a.", count: 16))a = 1").map(\.key) == [nil])
    }

    @Test func aLargeFileIsReadQuickly() {
        let hosts = (0..<40_000).map { "  \"host\($0).example\",\n" }.joined()
        #expect(settings("[fetch]\nallow = [\n\(hosts)]\n")?.allowedHosts?.count == 40_000)
        #expect(problems((0..<40_000).map { "[unknown\($0)]\n" }.joined()).count == 40_000)
    }
}
