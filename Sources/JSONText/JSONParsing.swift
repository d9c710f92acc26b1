internal import CJansson
internal import CPlatform

/// How much a text may ask of the parser.
public struct JSONLimits: Sendable {
    /// Arrays and objects inside each other.
    public var depth: Int
    /// Values in all; an empty array or object counts as two. A text of empty arrays takes some thirty times its size once
    /// parsed; this bounds it.
    public var values: Int

    public init(depth: Int, values: Int) {
        self.depth = depth
        self.values = values
    }
}

/// Why a text is not taken. It names a place, and never quotes the text: a broken message may hold a password.
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
        case .containsNUL: "the text holds a NUL byte"
        case .tooDeep(let limit): "arrays and objects are nested deeper than \(limit)"
        case .tooManyValues(let limit): "the text holds more than \(limit) values"
        case .notUTF8(let offset): "the text is not UTF-8 at byte \(offset)"
        case .duplicateMember(let offset): "an object has two members of one name, at byte \(offset)"
        case .numberTooLarge(let offset): "a number is too large, at byte \(offset)"
        case .syntax(let offset): "the text is not JSON at byte \(offset)"
        }
    }
}

extension JSON {
    /// Parses one value with nothing but white space around it. Members of one name in one object are refused: two parsers
    /// would not agree on which of them counts.
    public static func parse(_ text: UnsafeRawBufferPointer, limits: JSONLimits) throws(JSONFailure) -> JSON {
        try measure(text, limits: limits)
        WipingAllocator.install()
        var details = json_error_t()
        let flags = Int(JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL)
        guard let root = json_loadb(text.baseAddress, text.count, flags, &details) else {
            throw JSONFailure(details)
        }
        return JSON(.parsed(Node(owning: root)))
    }

    /// The same for bytes in an array.
    public static func parse(_ text: [UInt8], limits: JSONLimits) throws(JSONFailure) -> JSON {
        let result: Result<JSON, JSONFailure> = text.withUnsafeBytes { bytes in
            do throws(JSONFailure) { return .success(try parse(bytes, limits: limits)) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Finds what would cost too much before anything is allocated.
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
                break
            }
            if values > limits.values { throw .tooManyValues(limit: limits.values) }
            index += 1
        }
    }

    /// The place of the closing quotation mark, or the end of the text where there is none.
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
    /// jansson's own wording quotes the text, so only its code and position are used.
    init(_ details: json_error_t) {
        var details = details
        let offset = Int(max(details.position, 0))
        // The code is kept in the last byte of the text field (`json_error_code` in jansson.h).
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

/// jansson's allocator, changed once so that what it frees is wiped.
enum WipingAllocator {
    private static let installed: Void = watchword_json_use_wiping_allocator()

    static func install() { installed }
}
