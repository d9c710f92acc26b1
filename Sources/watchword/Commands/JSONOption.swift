import ArgumentParser
import JSONText

/// `--json`, for commands that show what the broker has answered.
struct JSONOption: ParsableArguments {
    @Flag(help: "Print the broker's own answer, as JSON.")
    var json = false

    /// One line on standard output: the answer, or `text`.
    func show(_ result: JSON, _ text: @autoclosure () -> String) {
        print(json ? result.line : text())
    }
}

extension JSON {
    /// As it is printed: one line, without its end.
    var line: String { String(decoding: serialized(), as: UTF8.self) }
}
