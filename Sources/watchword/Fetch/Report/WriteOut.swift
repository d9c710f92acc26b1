import ArgumentParser
import Glibc
import WatchwordProtocol

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

/// The format of `-w` (curl(1), "--write-out").
struct WriteOut {
    enum Stream { case output, error }

    private enum Part: Equatable {
        case text(String)
        case variable(String)
        /// `%header{NAME}`
        case header(String)
        /// `%{stdout}` and `%{stderr}`: the stream for the rest of the format.
        case stream(Stream)
        /// `%{onerror}`: the rest of the format is for failures only.
        case onError
    }

    private var parts: [Part] = []

    /// - Parameter argument: the format, or `@FILE`, or `@-` for standard input.
    init(argument: String) throws {
        guard argument.hasPrefix("@") else {
            self.init(argument)
            return
        }
        let file = String(argument.dropFirst())
        guard let text = String(validating: try InputFile.content(of: file), as: UTF8.self) else {
            throw InputFile.failure("\(file) is not UTF-8; convert it, or use another file for the format of -w")
        }
        // curl removes line ends.
        self.init(String(text.filter { !["\n", "\r", "\r\n"].contains($0) }))
    }

    init(_ format: String) {
        var rest = format[...]
        var text = ""
        func end() -> [Part] {
            defer { text = "" }
            return text.isEmpty ? [] : [.text(text)]
        }
        while let character = rest.popFirst() {
            if character == "\\", let escaped = rest.popFirst() {
                text += Self.escapes[escaped] ?? "\\\(escaped)"
            } else if character == "%", rest.first == "%" {
                text.append(rest.removeFirst())
            } else if character == "%", let name = Self.braced(&rest, after: "{") {
                parts += end() + [Self.part(name)]
            } else if character == "%", let name = Self.braced(&rest, after: "header{") {
                parts += end() + [.header(name)]
            } else {
                text.append(character)
            }
        }
        parts += end()
    }

    private static let escapes: [Character: String] = ["n": "\n", "r": "\r", "t": "\t"]

    private static func braced(_ rest: inout Substring, after start: String) -> String? {
        guard rest.hasPrefix(start), let end = rest.firstIndex(of: "}") else { return nil }
        defer { rest = rest[rest.index(after: end)...] }
        return String(rest[..<end].dropFirst(start.count))
    }

    private static func part(_ name: String) -> Part {
        switch name {
        case "stdout": .stream(.output)
        case "stderr": .stream(.error)
        case "onerror": .onError
        default: .variable(name)
        }
    }

    /// Whether the format uses variables whose values only `fetch/request` and `fetch/response` contain.
    var needsExchanges: Bool {
        let names = ["method", "num_redirects", "size_header", "size_upload"]
        return parts.contains { if case .variable(let name) = $0 { names.contains(name) } else { false } }
    }

    /// Returns the texts to write, in order, each with its stream; their `headerBytes` are written.
    func texts(_ facts: WriteOutFacts) -> [(stream: Stream, text: String)] {
        var (stream, texts) = (Stream.output, [(stream: Stream, text: String)]())
        for part in parts {
            switch part {
            case .text(let text): texts.append((stream, text.asHeader))
            case .variable(let name):
                let unknown = (Stream.error, "watchword: unknown --write-out variable: '\(name)'\n")
                texts.append(facts.value(of: name).map { (stream, $0) } ?? unknown)
            case .header(let name): texts.append((stream, facts.header(name)))
            case .stream(let next): stream = next
            case .onError: if facts.hasSucceeded { return texts }
            }
        }
        return texts
    }
}
