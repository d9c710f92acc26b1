import ArgumentParser
import WatchwordProtocol

/// The options that set one header field each.
struct HeaderOptions: ParsableArguments {
    @Option(
        name: [.customShort("A"), .long],
        help: ArgumentHelp("Set User-Agent; an empty name omits it.", valueName: "name"))
    var userAgent: String?

    @Option(name: [.customShort("e"), .long], help: ArgumentHelp("Set Referer.", valueName: "URL"))
    var referer: String?

    @Option(
        name: [.customShort("r"), .long], parsing: .unconditional,
        help: ArgumentHelp("Request only these bytes, such as 0-499, 500- or -500.", valueName: "range"))
    var range: String?

    @Option(
        name: [.customShort("b"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Send this cookie. Does not read files. Can be repeated.", valueName: "name=value"))
    var cookie: [String] = []

    func validate() throws {
        if cookie.contains(where: { !$0.contains("=") }) {
            throw ValidationError("-b takes name=value; cookie files are not supported")
        }
    }

    /// Adds the fields of these options. A field that `-H` sets or omits takes precedence.
    /// - Parameter note: reports an invalid range; not called for one that is not sent.
    func added(
        to headers: HeaderArgument.Fields, note: (String) -> Void = StandardError.note
    ) -> HeaderArgument.Fields {
        let sentRange = headers.mentions("Range") ? nil : range.map { "bytes=\(Self.checked($0, note: note))" }
        let own = [
            ("User-Agent", userAgent), ("Referer", referer), ("Range", sentRange),
            ("Cookie", cookie.isEmpty ? nil : cookie.joined(separator: "; ")),
        ]
        var result = headers
        for (name, value) in own where !headers.mentions(name) {
            guard let value else { continue }
            // An empty value omits the field, as in curl.
            if !value.isEmpty { result.sent.append(HeaderField(name, value)) } else { result.removed.append(name) }
        }
        return result
    }

    /// Returns the range to send. As in curl, a single number gets a dash, and an invalid range is sent unchanged, both with a
    /// note.
    static func checked(_ range: String, note: (String) -> Void = StandardError.note) -> String {
        let isNumber = range.utf8.allSatisfy { (0x30...0x39).contains($0) }
        if isNumber, !range.isEmpty {
            note("-r takes a range with a dash; sending \"\(range.shortened)-\"")
            return range + "-"
        }
        if !range.utf8.allSatisfy({ "0123456789-,".utf8.contains($0) }) {
            note("\"\(range.shortened)\" is not a byte range; sending it unchanged")
        }
        return range
    }
}

/// Parses the values of `-H`.
enum HeaderArgument {
    /// The header fields to send and to omit.
    struct Fields: Equatable {
        var sent: [HeaderField] = []
        /// The names of fields to omit.
        var removed: [String] = []

        func mentions(_ name: String) -> Bool { sent.firstValue(of: name) != nil || removes(name) }

        func removes(_ name: String) -> Bool { removed.contains { $0.lowercased() == name.lowercased() } }
    }

    /// Fields that the broker sets and that cannot be omitted.
    private static let cannotBeMissing: Set<String> = ["host", "content-length"]

    /// Returns the fields in the order of the command. `@FILE` reads one per line from a file, `@-` from standard input.
    static func fields(_ values: [String]) throws -> Fields {
        var fields = Fields()
        for value in values {
            guard value.hasPrefix("@") else {
                try add(value, to: &fields)
                continue
            }
            let file = String(value.dropFirst())
            guard let text = String(validating: try InputFile.content(of: file), as: UTF8.self) else {
                throw InputFile.failure("\(file) is not UTF-8; convert it, and write one header field per line")
            }
            for line in text.split(whereSeparator: { $0 == "\n" || $0 == "\r\n" }) {
                try add(String(line), to: &fields, in: file)
            }
        }
        return fields
    }

    /// Adds `Name: value`, `Name:` (omit the field) or `Name;` (an empty value). As in curl, any other line is skipped, here
    /// with a note. The note does not quote lines of files, which may contain secrets.
    private static func add(_ text: String, to fields: inout Fields, in file: String? = nil) throws {
        if let colon = text.firstIndex(of: ":") {
            let value = text[text.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            let name = String(text[..<colon])
            if value.isEmpty {
                try remove(name, from: &fields)
            } else {
                fields.sent.append(HeaderField(name, String(value)))
            }
        } else if let end = text.firstIndex(of: ";"), text.index(after: end) == text.endIndex {
            fields.sent.append(HeaderField(String(text[..<end]), ""))
        } else {
            let line = file.map { "a line of \($0)" } ?? "\"\(text.shortened)\""
            StandardError.note("\(line) is not a header field and is not sent; write \"Name: value\"")
        }
    }

    private static func remove(_ name: String, from fields: inout Fields) throws {
        guard !cannotBeMissing.contains(name.lowercased()) else {
            throw ValidationError("the broker sets header field \(name), which cannot be omitted")
        }
        fields.removed.append(name)
    }
}

extension HeaderArgument.Fields {
    /// The fields to omit that the broker would otherwise add.
    var omitted: [String] {
        ["Accept", "User-Agent", "Expect"].filter { removes($0) && sent.firstValue(of: $0) == nil }
    }
}
