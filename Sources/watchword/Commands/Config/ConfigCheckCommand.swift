import ArgumentParser
import JSONText
import WatchwordClient

struct ConfigCheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Name each mistake in the configuration by line and key.",
        discussion: """
            Asks watchwordd itself, whether or not a broker runs. Ends with 1 if there is a mistake.

            Examples:
              watchword config check
              watchword config check config.toml.new
            """)

    @Argument(help: "The configuration, in place of the one that \"watchword config path\" names.")
    var file: String?

    @Flag(help: "Print what was found as JSON.")
    var json = false

    func run() throws {
        let arguments = ["--check-config"] + (file.map { ["--config=\($0)"] } ?? [])
        if json, let path = Program.find("watchwordd") { return try report(Program.run(path, arguments)) }
        BrokerLauncher.become(arguments)
        complain("watchwordd was not found beside this program or in PATH. Install it, or put its folder into PATH.")
        throw ExitCode(ExitStatus.failedToStart)
    }

    private func report(_ check: (status: Int32, lines: [String])) throws {
        let result: JSON = [
            "inOrder": .boolean(check.status == 0), "lines": .array(check.lines.map { .string($0) }),
        ]
        print(result.line)
        if check.status != 0 { throw ExitCode(check.status > 0 ? check.status : ExitStatus.failedToStart) }
    }
}
