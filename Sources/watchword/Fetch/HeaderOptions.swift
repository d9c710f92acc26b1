import ArgumentParser
import WatchwordProtocol

/// Header fields with options of their own.
struct HeaderOptions: ParsableArguments {
    @Option(
        name: [.customShort("A"), .long],
        help: ArgumentHelp("The field User-Agent; an empty name sends none.", valueName: "name"))
    var userAgent: String?

    @Option(name: [.customShort("e"), .long], help: ArgumentHelp("The field Referer.", valueName: "URL"))
    var referer: String?

    @Option(
        name: [.customShort("r"), .long], parsing: .unconditional,
        help: ArgumentHelp("These bytes only, as in 0-499, 500- or -500.", valueName: "range"))
    var range: String?

    @Option(
        name: [.customShort("b"), .long], parsing: .unconditionalSingleValue,
        help: ArgumentHelp("The field Cookie; not the name of a file. Can be repeated.", valueName: "name=value"))
    var cookie: [String] = []

    func validate() throws {
        if cookie.contains(where: { !$0.contains("=") }) {
            throw ValidationError("-b takes name=value. A file of cookies is not read: there is no cookie jar.")
        }
    }

    /// What `-H` says of the same field counts.
    func added(to headers: HeaderArgument.Fields) -> HeaderArgument.Fields {
        let own = [
            ("User-Agent", userAgent), ("Referer", referer), ("Range", range.map { "bytes=\(Self.checked($0))" }),
            ("Cookie", cookie.isEmpty ? nil : cookie.joined(separator: "; ")),
        ]
        var result = headers
        for (name, value) in own where !headers.mentions(name) {
            guard let value else { continue }
            // curl's way to say that there is to be no such field.
            if !value.isEmpty { result.sent.append(HeaderField(name, value)) } else { result.removed.append(name) }
        }
        return result
    }

    /// As curl does, what looks wrong is sent all the same: the server says what it makes of it.
    static func checked(_ range: String) -> String {
        let isNumber = range.utf8.allSatisfy { (0x30...0x39).contains($0) }
        if isNumber, !range.isEmpty {
            StandardError.note("-r takes a range with a dash; \"\(range.shortened)-\" is meant")
            return range + "-"
        }
        if !range.utf8.allSatisfy({ "0123456789-,".utf8.contains($0) }) {
            StandardError.note("\"\(range.shortened)\" is no range of bytes, and is sent as it is")
        }
        return range
    }
}
