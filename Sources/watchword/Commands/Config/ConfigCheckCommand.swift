import ArgumentParser
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

struct ConfigCheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Report errors in the configuration, with line and key.",
        discussion: """
            Runs watchwordd to check the file; no broker has to be running. Exits with 1 if there is an error.

            Examples:
              watchword config check
              watchword config check config.toml.new
            """)

    @Argument(help: "The file, instead of the one printed by \"watchword config path\".")
    var file: String?

    @Flag(help: "Print the findings as JSON.")
    var json = false

    func run() throws {
        let arguments = ["--check-config"] + (file.map { ["--config=\($0)"] } ?? [])
        if json, let path = Program.find("watchwordd") { return try report(Program.run(path, arguments)) }
        BrokerLauncher.become(arguments)
        printError("cannot find watchwordd beside this program or in $PATH; install it, or add its directory to $PATH")
        throw ExitCode(ExitStatus.failedToStart)
    }

    private func report(_ check: (status: Int32, lines: [String])) throws {
        let path = file ?? ConfigurationLocation.path { name in getenv(name).map { String(cString: $0) } }
        let result: JSON = [
            // Without a file the defaults apply, which are in order.
            "exists": .boolean(path.map { access($0, F_OK) == 0 } ?? false), "inOrder": .boolean(check.status == 0),
            "lines": .array(check.lines.map { .string($0) }),
        ]
        print(result.line)
        if check.status != 0 { throw ExitCode(check.status > 0 ? check.status : ExitStatus.failedToStart) }
    }
}
