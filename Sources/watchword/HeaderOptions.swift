import ArgumentParser
import WatchwordProtocol

/// Header fields with options of their own.
struct HeaderOptions: ParsableArguments {
    @Option(name: [.customShort("A"), .long], help: ArgumentHelp("The field User-Agent.", valueName: "name"))
    var userAgent: String?

    @Option(name: [.customShort("e"), .long], help: ArgumentHelp("The field Referer.", valueName: "URL"))
    var referer: String?

    @Option(
        name: [.customShort("r"), .long],
        help: ArgumentHelp("These bytes only, as in 0-499, 500- or -500.", valueName: "range"))
    var range: String?

    func validate() throws {
        guard let range else { return }
        guard !range.isEmpty, range.utf8.allSatisfy({ "0123456789-,".utf8.contains($0) }), range.contains("-") else {
            throw ValidationError("-r takes bytes, as in 0-499, 500- or -500.")
        }
    }

    /// What `-H` says of the same field counts.
    func added(to headers: [HeaderField]) -> [HeaderField] {
        let own = [("User-Agent", userAgent), ("Referer", referer), ("Range", range.map { "bytes=\($0)" })]
        return headers
            + own.compactMap { name, value in
                // curl's way to say that there is to be no such field.
                if name == "Referer" && value == "" { return nil }
                return value.flatMap { headers.firstValue(of: name) == nil ? HeaderField(name, $0) : nil }
            }
    }
}

/// What is written besides the body.
struct ReportOptions: ParsableArguments {
    @Option(
        name: [.customShort("D"), .long],
        help: ArgumentHelp("Write the response's header to this file; - is standard output.", valueName: "file"))
    var dumpHeader: String?

    @Option(
        name: [.customShort("w"), .long], parsing: .unconditional,
        help: ArgumentHelp(
            "Write this to standard output at the end: text, \\n, \\t, and variables such as %{http_code}, %{size_download}, %{time_total}, %{url_effective}, %{content_type}, %{exitcode}, %{json}.",
            valueName: "format"))
    var writeOut: String?

    func validate() throws { _ = try format() }

    func format() throws -> WriteOut? { try writeOut.map { try WriteOut($0) } }
}
