import ArgumentParser
import JSONText

/// `--json`, for commands that print a result of the broker.
struct JSONOption: ParsableArguments {
    @Flag(help: "Print the result of the broker as JSON.")
    var json = false

    /// Prints the result as JSON with `--json`, otherwise `text`.
    func show(_ result: JSON, _ text: @autoclosure () -> String) {
        print(json ? result.line : text())
    }
}

extension JSON {
    /// The value as one line, without the line end.
    var line: String { String(decoding: serialized(), as: UTF8.self) }
}
