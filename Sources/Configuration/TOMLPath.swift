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
