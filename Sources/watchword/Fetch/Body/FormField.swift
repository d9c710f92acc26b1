import ArgumentParser
import WatchwordProtocol

/// One `-F`, with curl's meaning: `name=content`, `name=@file`, `name=<file`, and behind a semicolon `type=`, `filename=`
/// and `headers=`. What holds a semicolon, a comma or a quotation mark is put in quotation marks.
struct FormField: Equatable {
    enum Source: Equatable {
        case text(String)
        /// Sent as a file, with a name.
        case upload(path: String)
        /// Sent as the content of the field.
        case content(path: String)
    }

    var name: String
    var source: Source
    var type: String?
    var fileName: String?
    var headers: [String] = []

    /// Several for `name=@one,two`.
    static func parse(_ argument: String) throws -> [FormField] {
        guard let equals = argument.utf8.firstIndex(of: UInt8(ascii: "=")) else {
            throw ValidationError(
                "\"\(argument.shortened)\" is not a field of a form. Write name=content or name=@file.")
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
            throw ValidationError("-F takes no parts inside parts. Put what begins with \"(\" into --form-string.")
        default:
            var scanner = FormScanner(Substring(rest).utf8, separatesFiles: false)
            return [try scanner.field(name) { .text($0) }]
        }
    }

    /// `--form-string`: nothing in it means anything.
    static func literal(_ argument: String) throws -> FormField {
        guard let equals = argument.firstIndex(of: "=") else {
            throw ValidationError("\"\(argument.shortened)\" is not a field of a form. Write name=content.")
        }
        return FormField(
            name: String(argument[..<equals]), source: .text(String(argument[argument.index(after: equals)...])))
    }
}

/// Takes the words of one `-F` apart.
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
                // A parameter of the type, such as charset.
                rest = parameter
                field.type = (field.type ?? "") + ";" + upToSeparator()
            } else {
                throw ValidationError(
                    "\"\(upToSeparator().shortened)\" behind the semicolon in -F is none of type=, filename= and headers=. Content with a semicolon is put in quotation marks."
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
            throw ValidationError("headers= of -F takes one line, \"Name: value\".")
        }
        return text
    }

    private mutating func word() -> String {
        skipSpaces()
        return quoted() ?? upToSeparator()
    }

    /// `nil` for what is not between quotation marks; a backslash there escapes itself and quotation marks.
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
