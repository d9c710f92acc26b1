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
