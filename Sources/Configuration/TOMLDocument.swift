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
