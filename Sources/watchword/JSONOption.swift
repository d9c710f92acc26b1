import ArgumentParser
import JSONText

/// `--json`, for commands that do one thing and say that it is done.
struct JSONOption: ParsableArguments {
    @Flag(help: "Print the broker's own answer, as JSON.")
    var json = false

    /// One line on standard output: the answer, or `text`.
    func show(_ result: JSON, _ text: @autoclosure () -> String) {
        print(json ? String(decoding: result.serialized(), as: UTF8.self) : text())
    }
}
