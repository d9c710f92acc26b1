import ArgumentParser
import JSONText
import WatchwordProtocol

struct PromptsListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Show the programs whose questions you have stopped.",
        discussion: """
            Example:
              watchword prompts list
            """)

    @OptionGroup var output: JSONOption

    @OptionGroup var broker: SocketOption

    func run() throws {
        let result = try broker.call(PromptList())
        if output.json { return print(result.line) }
        let rows = (result["stopped"]?.elements ?? []).map(Self.row)
        print(rows.isEmpty ? "No stopped programs." : TextTable.text([Self.heading] + rows))
    }

    private static let heading = ["PROGRAM", "STOPPED (MIN AGO)", "QUESTIONS NOT ASKED"]

    private static func row(_ entry: JSON) -> [String] {
        [
            (entry["subject"]?.string ?? "").shortened(to: 300), "\((entry["sinceMs"]?.integer ?? 0) / 60_000)",
            "\(entry["unasked"]?.integer ?? 0)",
        ]
    }
}
