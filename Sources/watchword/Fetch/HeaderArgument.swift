import ArgumentParser
import WatchwordProtocol

/// The values of `-H`.
enum HeaderArgument {
    /// What they say together.
    struct Fields: Equatable {
        var sent: [HeaderField] = []
        /// Names of fields that are not to be sent.
        var removed: [String] = []

        func mentions(_ name: String) -> Bool { sent.firstValue(of: name) != nil || removes(name) }

        func removes(_ name: String) -> Bool { removed.contains { $0.lowercased() == name.lowercased() } }
    }

    /// The broker sets them, and a request is nothing without them.
    private static let cannotBeMissing: Set<String> = ["host", "content-length"]

    /// In their order; for `@FILE` those in its lines, and for `@-` those of standard input.
    static func fields(_ values: [String]) throws -> Fields {
        var fields = Fields()
        for value in values {
            guard value.hasPrefix("@") else {
                try add(value, to: &fields)
                continue
            }
            let file = String(value.dropFirst())
            guard let text = String(validating: try InputFile.content(of: file), as: UTF8.self) else {
                throw InputFile.failure("the file \(file) is not UTF-8; write one header field in each line")
            }
            for line in text.split(whereSeparator: { $0 == "\n" || $0 == "\r\n" }) {
                try add(String(line), to: &fields, in: file)
            }
        }
        return fields
    }

    /// `Name: value`, `Name:` for none of that name, and `Name;` for one without a value. A line that is none of these is left
    /// out, as curl does, but not silently. It is not quoted where it comes from a file: the value in it may be a secret.
    private static func add(_ text: String, to fields: inout Fields, in file: String? = nil) throws {
        if let colon = text.firstIndex(of: ":") {
            let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            let name = String(text[..<colon])
            if value.isEmpty {
                try remove(name, from: &fields)
            } else {
                fields.sent.append(HeaderField(name, String(value)))
            }
        } else if let end = text.firstIndex(of: ";"), text[end...].dropFirst().allSatisfy({ $0 == " " || $0 == "\t" }) {
            fields.sent.append(HeaderField(String(text[..<end]), ""))
        } else {
            let line = file.map { "a line of the file \($0)" } ?? "\"\(text.shortened)\""
            StandardError.note("\(line) is not a header field, and is not sent; write \"Name: value\"")
        }
    }

    private static func remove(_ name: String, from fields: inout Fields) throws {
        guard !cannotBeMissing.contains(name.lowercased()) else {
            throw ValidationError("The field \(name) cannot be left out: the broker sets it.")
        }
        fields.removed.append(name)
    }
}

extension HeaderArgument.Fields {
    /// Of those that are removed, the ones that the broker would add.
    var omitted: [String] {
        ["Accept", "User-Agent", "Expect"].filter { removes($0) && sent.firstValue(of: $0) == nil }
    }
}
