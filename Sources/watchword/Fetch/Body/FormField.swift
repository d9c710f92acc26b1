import ArgumentParser
import WatchwordProtocol

/// A form field of `-F`, as in curl: `name=content`, `name=@file` or `name=<file`, followed by `;type=`, `;filename=` and
/// `;headers=`. Content and parameters with a semicolon, a comma or a quotation mark have to be quoted.
struct FormField: Equatable {
    enum Source: Equatable {
        case text(String)
        /// A file that is uploaded with its name.
        case upload(path: String)
        /// A file whose content is the value of the field.
        case content(path: String)
    }

    var name: String
    var source: Source
    var type: String?
    var fileName: String?
    var headers: [String] = []

    /// Parses the value of `-F`. Returns several fields for `name=@one,two`.
    static func parse(_ argument: String) throws -> [FormField] {
        guard let equals = argument.utf8.firstIndex(of: UInt8(ascii: "=")) else {
            throw ValidationError(
                "\"\(argument.shortened)\" is not a form field; write name=content or name=@file")
        }
        let name = String(argument[..<equals])
        let rest = argument[argument.utf8.index(after: equals)...]
        switch rest.utf8.first {
        case UInt8(ascii: "@"):
            var scanner = FormScanner(rest.utf8.dropFirst(), separatesFiles: true)
            var fields: [FormField] = []
            repeat {
                fields.append(try scanner.field(name) { .upload(path: $0) })
            } while scanner.skipComma()
            return fields
        case UInt8(ascii: "<"):
            var scanner = FormScanner(rest.utf8.dropFirst(), separatesFiles: false)
            return [try scanner.field(name) { .content(path: $0) }]
        case UInt8(ascii: "("):
            throw ValidationError(
                "-F does not support nested parts; use --form-string for content that begins with \"(\"")
        default:
            var scanner = FormScanner(Substring(rest).utf8, separatesFiles: false)
            return [try scanner.field(name) { .text($0) }]
        }
    }

    /// Parses the value of `--form-string`, whose content is taken literally.
    static func literal(_ argument: String) throws -> FormField {
        guard let equals = argument.firstIndex(of: "=") else {
            throw ValidationError("\"\(argument.shortened)\" is not a form field; write name=content")
        }
        return FormField(
            name: String(argument[..<equals]), source: .text(String(argument[argument.index(after: equals)...])))
    }
}

/// Splits the value of `-F` into words and parameters.
struct FormScanner {
    private static let spaces = Set(" \t\n\u{0B}\u{0C}\r".utf8)

    private var rest: ArraySlice<UInt8>
    private let separatesFiles: Bool

    init(_ text: some Sequence<UInt8>, separatesFiles: Bool) {
        rest = Array(text)[...]
        self.separatesFiles = separatesFiles
    }

    mutating func field(_ name: String, _ source: (String) -> FormField.Source) throws -> FormField {
        var field = FormField(name: name, source: source(word()))
        var isInType = false
        while rest.first == UInt8(ascii: ";") {
            rest = rest.dropFirst()
            let parameter = rest
            skipSpaces()
            if field.type == nil && skip("type=") {
                field.type = upToSeparator()
                isInType = true
            } else if skip("filename=") {
                field.fileName = word()
                isInType = false
            } else if skip("headers=") {
                field.headers.append(try header(word()))
                isInType = false
            } else if isInType {
                // A parameter of the content type, such as charset.
                rest = parameter
                field.type = (field.type ?? "") + ";" + upToSeparator()
            } else {
                throw ValidationError(
                    "unknown parameter \"\(upToSeparator().shortened)\" in -F; use type=, filename= or headers=, and quote content with a semicolon"
                )
            }
        }
        return field
    }

    mutating func skipComma() -> Bool {
        guard rest.first == UInt8(ascii: ",") else { return false }
        rest = rest.dropFirst()
        return true
    }

    private func header(_ text: String) throws -> String {
        guard !text.hasPrefix("@"), text.contains(":"), !text.utf8.contains(where: { $0 < 0x20 }) else {
            throw ValidationError("headers= of -F takes one line, \"Name: value\"; files are not supported")
        }
        return text
    }

    private mutating func word() -> String {
        skipSpaces()
        return quoted() ?? upToSeparator()
    }

    /// Reads a quoted word, in which a backslash escapes itself and quotation marks. Returns `nil` if the word is not quoted.
    private mutating func quoted() -> String? {
        guard rest.first == UInt8(ascii: "\"") else { return nil }
        var result: [UInt8] = []
        var scan = rest.dropFirst()
        while let byte = scan.popFirst() {
            if byte == UInt8(ascii: "\"") {
                rest = scan
                _ = upToSeparator()
                return String(decoding: result, as: UTF8.self)
            }
            let isEscape = byte == UInt8(ascii: "\\") && [UInt8(ascii: "\\"), UInt8(ascii: "\"")].contains(scan.first)
            result.append(isEscape ? scan.removeFirst() : byte)
        }
        return nil
    }

    private mutating func upToSeparator() -> String {
        let end =
            rest.firstIndex { $0 == UInt8(ascii: ";") || (separatesFiles && $0 == UInt8(ascii: ",")) } ?? rest.endIndex
        var text = rest[..<end]
        rest = rest[end...]
        while let last = text.last, Self.spaces.contains(last) { text = text.dropLast() }
        return String(decoding: text, as: UTF8.self)
    }

    private mutating func skip(_ prefix: String) -> Bool {
        guard rest.starts(with: prefix.utf8) else { return false }
        rest = rest.dropFirst(prefix.utf8.count)
        return true
    }

    private mutating func skipSpaces() { rest = rest.drop { Self.spaces.contains($0) } }
}
