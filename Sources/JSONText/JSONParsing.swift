internal import CJansson
internal import CPlatform

/// The limits of the parser.
public struct JSONLimits: Sendable {
    /// The maximum nesting of arrays and objects.
    public var depth: Int
    /// The maximum number of values; an empty array or object counts as two. This limits the memory of the parsed tree:
    /// for a text of empty arrays, the tree is about thirty times as large as the text.
    public var values: Int

    public init(depth: Int, values: Int) {
        self.depth = depth
        self.values = values
    }
}

/// A parse error, with its byte offset in the text. The text is never quoted, because a malformed message may contain a
/// password.
public enum JSONFailure: Error, Equatable, Sendable {
    case containsNUL
    case tooDeep(limit: Int)
    case tooManyValues(limit: Int)
    case notUTF8(offset: Int)
    case duplicateMember(offset: Int)
    case numberTooLarge(offset: Int)
    case syntax(offset: Int)
}

extension JSONFailure: CustomStringConvertible {
    public var description: String {
        switch self {
        case .containsNUL: "the text contains a NUL byte"
        case .tooDeep(let limit): "arrays and objects are nested deeper than \(limit)"
        case .tooManyValues(let limit): "the text contains more than \(limit) values"
        case .notUTF8(let offset): "invalid UTF-8 at byte \(offset)"
        case .duplicateMember(let offset): "duplicate member name in an object at byte \(offset)"
        case .numberTooLarge(let offset): "number too large at byte \(offset)"
        case .syntax(let offset): "invalid JSON at byte \(offset)"
        }
    }
}

extension JSON {
    /// Parses one value; only white space may precede or follow it. Duplicate member names in an object are an error,
    /// because parsers disagree on which of them counts.
    public static func parse(_ text: UnsafeRawBufferPointer, limits: JSONLimits) throws(JSONFailure) -> JSON {
        try measure(text, limits: limits)
        WipingAllocator.install()  // guard: json-wiping-allocator
        var details = json_error_t()
        let flags = Int(JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL)  // guard: json-duplicate-members
        guard let root = json_loadb(text.baseAddress, text.count, flags, &details) else {
            throw JSONFailure(details)
        }
        return JSON(.parsed(Node(owning: root)))
    }

    public static func parse(_ text: [UInt8], limits: JSONLimits) throws(JSONFailure) -> JSON {
        let result: Result<JSON, JSONFailure> = text.withUnsafeBytes { bytes in
            do throws(JSONFailure) { return .success(try parse(bytes, limits: limits)) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Checks the limits before the parser allocates memory.
    private static func measure(_ text: UnsafeRawBufferPointer, limits: JSONLimits) throws(JSONFailure) {
        var depth = 0
        var values = 1
        var index = 0
        while index < text.count {
            switch text[index] {
            case 0:
                throw .containsNUL
            case UInt8(ascii: "\""):
                index = try endOfString(in: text, from: index + 1)
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                depth += 1
                values += 1
                if depth > limits.depth { throw .tooDeep(limit: limits.depth) }
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                depth -= 1
            case UInt8(ascii: ","):
                values += 1
            default:
                index += 1
                continue
            }
            if values > limits.values { throw .tooManyValues(limit: limits.values) }
            index += 1
        }
    }

    /// Returns the index of the closing quotation mark, or the length of the text if there is none.
    private static func endOfString(in text: UnsafeRawBufferPointer, from start: Int) throws(JSONFailure) -> Int {
        var index = start
        while index < text.count {
            switch text[index] {
            case 0: throw .containsNUL
            case UInt8(ascii: "\""): return index
            case UInt8(ascii: "\\") where index + 1 < text.count && text[index + 1] != 0: index += 2
            default: index += 1
            }
        }
        return index
    }
}

extension JSONFailure {
    /// Uses only the code and the position of jansson's error, because its message quotes the text.
    init(_ details: json_error_t) {
        var details = details
        let offset = Int(max(details.position, 0))
        // jansson stores the code in the last byte of the text field (`json_error_code` in jansson.h).
        let code = withUnsafePointer(to: &details) { json_error_code($0) }
        self =
            switch code {
            case json_error_invalid_utf8: .notUTF8(offset: offset)
            case json_error_duplicate_key: .duplicateMember(offset: offset)
            case json_error_numeric_overflow: .numberTooLarge(offset: offset)
            default: .syntax(offset: offset)
            }
    }
}

/// Makes jansson wipe the memory that it frees.
enum WipingAllocator {
    private static let installed: Void = watchword_json_use_wiping_allocator()

    static func install() { installed }
}
