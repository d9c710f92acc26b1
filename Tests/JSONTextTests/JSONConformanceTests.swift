import JSONText
import Testing

/// RFC 8259, case by case: texts that must be accepted, texts that must be refused, and the results that the RFC leaves open.
struct JSONConformanceTests {
    static let taken: [(text: String, compact: String)] = [
        ("[]", "[]"), ("{}", "{}"), (" \t\r\n[ \t\r\n1 \t\r\n, 2 ] \n", "[1,2]"), ("[[],[[]],{}]", "[[],[[]],{}]"),
        ("null", "null"), ("true", "true"), ("false", "false"), ("0", "0"), (#""""#, #""""#),
        ("[-0]", "[0]"), ("[-1]", "[-1]"), ("[0.5]", "[0.5]"), ("[1.0]", "[1.0]"), ("[-1.5e-3]", "[-0.0015]"),
        ("[1E2,1e+2]", "[100.0,100.0]"), ("[0e5]", "[0.0]"), ("[1234567890123]", "[1234567890123]"),
        (#"["\"\\\/\b\f\n\r\t"]"#, #"["\"\\/\b\f\n\r\t"]"#), (#"["\u0041\u00e9\u20AC"]"#, "[\"Aé€\"]"),
        (#"["\uD834\uDD1E"]"#, "[\"𝄞\"]"), (#"["\uDBFF\uDFFF"]"#, "[\"\u{10FFFF}\"]"), (#"["\u0000"]"#, #"["\u0000"]"#),
        (#"["\\u0041"]"#, #"["\\u0041"]"#), ("[\"\u{7F}\"]", "[\"\u{7F}\"]"), ("[\"\u{2028}\"]", "[\"\u{2028}\"]"),
        ("[\"\u{FFFF}\"]", "[\"\u{FFFF}\"]"), ("[\"\u{FEFF}\"]", "[\"\u{FEFF}\"]"), (#"{"":{"":0}}"#, #"{"":{"":0}}"#),
        (#"{"a":[],"b":{},"c":null}"#, #"{"a":[],"b":{},"c":null}"#), (#"["/*","//"]"#, #"["/*","//"]"#),
    ]

    @Test(arguments: taken)
    func isTaken(text: String, compact: String) throws {
        #expect(try JSON.parse(text).text == compact)
    }

    static let refused = [
        "", " ", "[", "]", "{", "}", "[1", "[1,", "[1,]", "[,1]", "[,]", "[1,,2]", "[1 2]", "[1;2]", "[1]]", "[1}",
        "{]",
        #"{"a":1,}"#, #"{,"a":1}"#, #"{"a":1 "b":2}"#, #"{"a" 1}"#, #"{"a"}"#, #"{"a":}"#, #"{:1}"#, "{a:1}", "{'a':1}",
        "{1:2}", "{null:1}", "{[]:1}", #"{"a":1"#, #"{"a":1}}"#, #"{"a"::1}"#,
        "1 2", "{} {}", "[][]", "nul", "True", "NULL", "truefalse", "undefined", "NaN", "[Infinity]", "[-Infinity]",
        "[01]", "[-01]", "[+1]", "[.5]", "[-.5]", "[1.]", "[1.e1]", "[-]", "[1e]", "[1e+]", "[1ee1]", "[1.5.5]",
        "[0x1]",
        "[1_000]", "[1 000]", "[--1]", "[１]",
        "\"", "\"abc", "abc", "'abc'", #""\""#, #""\x41""#, #""\u""#, #""\u00""#, #""\u00g0""#, #""\U0041""#, #""\a""#,
        #""\ "#, "\"\\", "[\"a\nb\"]", "[\"a\tb\"]", "[\"\u{1F}\"]",
        #"["\uD800"]"#, #"["\uDC00"]"#, #"["\uD800\u0041"]"#, #"["\uD800\uD800"]"#, #"["\uDC00\uD800"]"#,
        #"["\uD800x"]"#,
        "// comment\n1", "[1]/**/", "#1", "\u{FEFF}[]", "\u{A0}[]", "\u{C}[]", "\u{2060}[]", "[\u{200B}1]", "<null>",
    ]

    @Test(arguments: refused)
    func isRefused(text: String) {
        #expect(throws: JSONFailure.self) { try JSON.parse(text) }
    }

    /// Byte sequences that are not UTF-8 (RFC 3629 sections 3 and 4).
    static let notUTF8: [[UInt8]] = [
        [0x80], [0xBF], [0xFF], [0xFE], [0xC0, 0x80], [0xC1, 0xBF], [0xC3], [0xC3, 0x28], [0xE0, 0x80, 0x80],
        [0xE0, 0x9F, 0xBF], [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x80, 0x80, 0x80],
        [0xF0, 0x8F, 0xBF, 0xBF], [0xF0, 0x9D, 0x84], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80],
        [0xF8, 0x88, 0x80, 0x80, 0x80],
    ]

    @Test(arguments: notUTF8)
    func isNotUTF8(bytes: [UInt8]) {
        let quote = UInt8(ascii: "\"")
        for text in [[quote] + bytes + [quote], bytes, Array("{\"a".utf8) + bytes + Array("\":1}".utf8)] {
            let failure = #expect(throws: JSONFailure.self) {
                try JSON.parse(text, limits: JSONLimits(depth: 4, values: 4))
            }
            guard case .notUTF8? = failure else {
                Issue.record("\(text) was refused as \(String(describing: failure))")
                continue
            }
        }
    }

    @Test(arguments: UInt8(1)...0x1F)
    func controlCharactersInStringsMustBeEscaped(control: UInt8) throws {
        let raw = String(UnicodeScalar(control))
        #expect(throws: JSONFailure.self) { try JSON.parse("\"\(raw)\"") }
        let escape = "\\u00" + (control < 16 ? "0" : "") + String(control, radix: 16)
        #expect(try JSON.parse("\"\(escape)\"").string == raw)
    }
}
