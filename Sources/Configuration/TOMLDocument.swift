internal import CToml

/// A text, with the line of the file in which it starts or to which it refers.
struct TOMLText {
    let text: String
    let line: Int

    init(_ text: watchword_toml_text) {
        let bytes = UnsafeRawBufferPointer(start: text.bytes, count: text.length)
        self.text = String(decoding: bytes, as: UTF8.self)
        line = Int(text.line)
    }
}

/// The value of a key.
enum TOMLValue {
    case string(String)
    case integer(Int64)
    case boolean(Bool)
    case real(Double)
    case strings([TOMLText])
    /// Not empty.
    case integers([Int64])
    case table
    /// A list of tables, whose entries follow with the paths `PATH[INDEX]` and `PATH[INDEX].KEY`. Not empty.
    case tables
    case other
}

/// A key or a table of the file.
struct TOMLEntry {
    /// The dotted path. Parts that are not bare keys are in quotation marks.
    let path: String
    /// The number of parts of the path.
    let depth: Int
    let line: Int
    let value: TOMLValue

    init(_ entry: watchword_toml_entry) {
        let key = TOMLText(entry.path)
        (path, depth, line) = (key.text, entry.depth, key.line)
        value =
            switch entry.kind {
            case WATCHWORD_TOML_STRING: .string(TOMLText(entry.string).text)
            case WATCHWORD_TOML_INTEGER: .integer(entry.integer)
            case WATCHWORD_TOML_BOOLEAN: .boolean(entry.boolean)
            case WATCHWORD_TOML_REAL: .real(entry.real)
            case WATCHWORD_TOML_STRINGS:
                .strings(UnsafeBufferPointer(start: entry.strings, count: entry.string_count).map(TOMLText.init))
            case WATCHWORD_TOML_INTEGERS:
                .integers(Array(UnsafeBufferPointer(start: entry.integers, count: entry.integer_count)))
            case WATCHWORD_TOML_TABLE: .table
            case WATCHWORD_TOML_TABLES: .tables
            default: .other
            }
    }
}

/// Parses a file into a flat list of entries, in the order of the text.
enum TOMLDocument {
    /// The size limit for a text, in bytes.
    static let largestSize = Int(WATCHWORD_TOML_BYTES)

    /// A syntax error: the parser's message and its line.
    struct SyntaxError: Error {
        let message: TOMLText
    }

    static func parse(_ bytes: [UInt8]) throws(SyntaxError) -> [TOMLEntry] {
        let document = bytes.withUnsafeBytes { buffer in
            watchword_toml_parse(buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count)
        }
        defer { watchword_toml_free(document) }
        guard let parsed = document?.pointee else { return [] }
        guard parsed.error.bytes == nil else { throw SyntaxError(message: TOMLText(parsed.error)) }
        return UnsafeBufferPointer(start: parsed.entries, count: parsed.entry_count).map(TOMLEntry.init)
    }
}

/// A part of the path of an entry.
enum TOMLPathPart: Equatable {
    /// A key, without quotation marks. It can contain any characters, also dots and brackets.
    case key(String)
    /// The index of a table in a list of tables.
    case index(Int)
}

extension TOMLEntry {
    /// The parts of the path; their number is `depth`. The path itself is for messages: as text, `a."b.c"` and `a.b.c` have the
    /// same parts between dots.
    var parts: [TOMLPathPart] {
        var scanner = TOMLPathScanner(path)
        return scanner.parts()
    }
}

/// Splits the path of an entry, as CToml writes it: keys that are not bare are in quotation marks, with a backslash before
/// quotation marks and backslashes; `[INDEX]` follows the key of a list.
private struct TOMLPathScanner {
    private let bytes: [UInt8]
    private var index = 0

    init(_ path: String) { bytes = Array(path.utf8) }

    mutating func parts() -> [TOMLPathPart] {
        var parts: [TOMLPathPart] = []
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "."): index += 1
            case UInt8(ascii: "["): parts.append(.index(position()))
            case UInt8(ascii: "\""): parts.append(.key(quoted()))
            default: parts.append(.key(bare()))
            }
        }
        return parts
    }

    private mutating func position() -> Int {
        index += 1
        let digits = bytes[index...].prefix { $0 != UInt8(ascii: "]") }
        index += digits.count + 1
        return Int(String(decoding: digits, as: UTF8.self)) ?? 0
    }

    private mutating func quoted() -> String {
        var key: [UInt8] = []
        index += 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            if bytes[index] == UInt8(ascii: "\\") { index += 1 }
            if index < bytes.count { key.append(bytes[index]) }
            index += 1
        }
        index += 1
        return String(decoding: key, as: UTF8.self)
    }

    private mutating func bare() -> String {
        let key = bytes[index...].prefix { $0 != UInt8(ascii: ".") && $0 != UInt8(ascii: "[") }
        index += key.count
        return String(decoding: key, as: UTF8.self)
    }
}
