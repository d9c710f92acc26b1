import ArgumentParser
import Glibc

/// The options for output other than the body.
struct ReportOptions: ParsableArguments {
    @Option(
        name: [.customShort("D"), .long],
        help: ArgumentHelp("Write the response's header to this file; - is standard output.", valueName: "file"),
        completion: .file())
    var dumpHeader: String?

    @Option(
        name: [.customShort("w"), .long], parsing: .unconditional,
        help: ArgumentHelp(
            "Write this to standard output after the transfer: text, \\n, \\t, and variables such as %{http_code}, %{size_download}, %{time_total}, %{url_effective}, %{content_type}, %{exitcode}, %{json}, %header{name}; @file reads the format from a file.",
            valueName: "format"))
    var writeOut: String?

    func format() throws -> WriteOut? { try writeOut.map { try WriteOut(argument: $0) } }
}
