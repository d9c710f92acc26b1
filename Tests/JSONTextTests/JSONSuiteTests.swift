import JSONText
import Testing

/// Every kind of file of the JSONTestSuite has an outcome; if RFC 8259 leaves it to the parser, it is the outcome that
/// Protocol/SPECIFICATION.md names.
struct JSONSuiteTests {
    @Test("Rule J1: valid JSON is accepted", arguments: JSONSuiteKinds.accepted)
    func isAccepted(name: String, text: String) {
        #expect(throws: Never.self, "\(name)") { try Self.parse(text.utf8) }
    }

    @Test("Rule J1: malformed JSON is refused", arguments: JSONSuiteKinds.refused)
    func isRefused(name: String, text: String) {
        #expect(throws: JSONFailure.self, "\(name)") { try Self.parse(text.utf8) }
    }

    @Test(arguments: JSONSuiteKinds.refusedBytes)
    func bytesAreRefused(name: String, text: String) {
        #expect(throws: JSONFailure.self, "\(name)") { try Self.parse(Self.bytes(text)) }
    }

    enum Outcome: String {
        case taken, numberTooLarge, notUTF8, syntax, containsNUL, duplicateMember, tooDeep
    }

    /// `i_`, and the kinds with `y_` that are refused here. Each character stands for one byte.
    static let leftOpen: [(name: String, text: String, outcome: Outcome)] = [
        // Numbers that underflow are zero; numbers that overflow are refused, and never rounded or infinite.
        ("i_number_double_huge_neg_exp", "[7.8e-900]", .taken), ("i_number_real_underflow", "[78e-9000000]", .taken),
        ("i_number_huge_exp", "[0.7e0" + String(repeating: "9", count: 90) + "]", .numberTooLarge),
        ("i_number_neg_int_huge_exp", "[-7e+8888]", .numberTooLarge),
        ("i_number_pos_double_huge_exp", "[7.8e+8888]", .numberTooLarge),
        ("i_number_real_neg_overflow", "[-78e99999]", .numberTooLarge),
        ("i_number_real_pos_overflow", "[78e99999]", .numberTooLarge),
        ("i_number_too_big_neg_int", "[-" + String(repeating: "7", count: 30) + "]", .numberTooLarge),
        ("i_number_too_big_pos_int", "[7" + String(repeating: "0", count: 20) + "]", .numberTooLarge),
        ("i_number_very_big_negative_int", "[-" + String(repeating: "7", count: 48) + "]", .numberTooLarge),
        // An incomplete surrogate pair, or an inverted one, is not a character.
        ("i_object_key_lone_2nd_surrogate", #"{"\uDF00":7}"#, .syntax),
        ("i_string_1st_surrogate_but_2nd_missing", #"["\uD83C"]"#, .syntax),
        ("i_string_1st_valid_surrogate_2nd_invalid", #"["\uD83C\u1234"]"#, .syntax),
        ("i_string_incomplete_surrogate_and_escape_valid", #"["\uD83C\n"]"#, .syntax),
        ("i_string_incomplete_surrogates_escape_valid", #"["\uD83C\uD83C\n"]"#, .syntax),
        ("i_string_incomplete_surrogate_pair", #"["\uDf00a"]"#, .syntax),
        ("i_string_invalid_lonely_surrogate", #"["\ud83c"]"#, .syntax),
        ("i_string_invalid_surrogate", #"["\ud83cab"]"#, .syntax),
        ("i_string_inverted_surrogates_U+1D11E", #"["\uDd1e\uD834"]"#, .syntax),
        ("i_string_lone_second_surrogate", #"["\uDF00"]"#, .syntax),
        // UTF-8 as in RFC 3629, and no other encoding.
        ("i_string_invalid_utf-8", "[\"\u{FF}\"]", .notUTF8), ("i_string_iso_latin_1", "[\"\u{E9}\"]", .notUTF8),
        ("i_string_lone_utf8_continuation_byte", "[\"\u{81}\"]", .notUTF8),
        ("i_string_not_in_unicode_range", "[\"\u{F4}\u{BF}\u{BF}\u{BF}\"]", .notUTF8),
        ("i_string_overlong_sequence_2_bytes", "[\"\u{C0}\u{AF}\"]", .notUTF8),
        ("i_string_overlong_sequence_6_bytes", "[\"\u{FC}\u{83}\u{BF}\u{BF}\u{BF}\u{BF}\"]", .notUTF8),
        ("i_string_overlong_sequence_6_bytes_null", "[\"\u{FC}\u{80}\u{80}\u{80}\u{80}\u{80}\"]", .notUTF8),
        ("i_string_truncated-utf-8", "[\"\u{E0}\u{FF}\"]", .notUTF8),
        ("i_string_UTF-8_invalid_sequence", "[\"\u{E6}\u{97}\u{A5}\u{FA}\"]", .notUTF8),
        ("i_string_UTF8_surrogate_U+D800", "[\"\u{ED}\u{A0}\u{80}\"]", .notUTF8),
        ("i_string_UTF-16LE_with_BOM", "\u{FF}\u{FE}[\u{0}7\u{0}]\u{0}", .containsNUL),
        ("i_string_utf16BE_no_BOM", "\u{0}[\u{0}7\u{0}]", .containsNUL),
        ("i_string_utf16LE_no_BOM", "[\u{0}7\u{0}]\u{0}", .containsNUL),
        ("i_structure_UTF-8_BOM_empty_object", "\u{EF}\u{BB}\u{BF}{}", .syntax),
        (
            "i_structure_500_nested_arrays", String(repeating: "[", count: 500) + String(repeating: "]", count: 500),
            .tooDeep
        ),
        // RFC 8259 section 4 only recommends unique names; but readers of a credential must not differ about its contents.
        ("y_object_duplicated_key", #"{"a":7,"a":8}"#, .duplicateMember),
        ("y_object_duplicated_key_and_value", #"{"a":7,"a":7}"#, .duplicateMember),
        ("y_object_escaped_null_in_key", #"{"a\u0000b":7}"#, .syntax),
    ]

    @Test("Rule J1: each undefined case of JSON has the documented outcome", arguments: leftOpen)
    func hasTheDocumentedOutcome(name: String, text: String, outcome: Outcome) {
        let found: Outcome
        do throws(JSONFailure) {
            try Self.parse(Self.bytes(text))
            found = .taken
        } catch {
            found =
                switch error {
                case .containsNUL: .containsNUL
                case .tooDeep, .tooManyValues: .tooDeep
                case .notUTF8: .notUTF8
                case .duplicateMember: .duplicateMember
                case .numberTooLarge: .numberTooLarge
                case .syntax: .syntax
                }
        }
        #expect(found == outcome, "\(name)")
    }

    /// Parses with the limits of the broker.
    private static func parse(_ text: some Sequence<UInt8>) throws(JSONFailure) {
        _ = try JSON.parse(Array(text), limits: JSONLimits(depth: 64, values: 1 << 18))
    }

    private static func bytes(_ text: String) -> [UInt8] {
        text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }
}
