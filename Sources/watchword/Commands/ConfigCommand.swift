import ArgumentParser
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "config", "Check or locate the broker's configuration; see watchword-config(5).",
        examples: "watchword config check", subcommands: [ConfigCheckCommand.self, ConfigPathCommand.self])
}

struct ConfigCheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "check", "Report errors in the configuration, with line and key.",
        "Runs watchwordd to check the file; no broker has to be running. Exits with 1 if there is an error.",
        examples: "watchword config check", "watchword config check config.toml.new")

    @Argument(help: "The file, instead of the one printed by \"watchword config path\".")
    var file: String?

    @Flag(help: "Print the findings as JSON.")
    var json = false

    func run() throws {
        let arguments = ["--check-config"] + (file.map { ["--config=\($0)"] } ?? [])
        if json, let path = Program.find("watchwordd") { return try report(Program.run(path, arguments)) }
        BrokerLauncher.become(arguments)
        throw ExitCode(
            ExitStatus.failedToStart,
            printing:
                "cannot find watchwordd beside this program or in $PATH; install it, or add its directory to $PATH")
    }

    private func report(_ check: (status: Int32, lines: [String])) throws {
        let path = file ?? ConfigurationLocation.path(environment: Environment.text)
        let result: JSON = [
            // Without a file the defaults apply, which are in order.
            "exists": .boolean(path.map { access($0, F_OK) == 0 } ?? false), "inOrder": .boolean(check.status == 0),
            "lines": .array(check.lines.map { .string($0) }),
        ]
        print(result.line)
        if check.status != 0 { throw ExitCode(check.status > 0 ? check.status : ExitStatus.failedToStart) }
    }
}

struct ConfigPathCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "path", "Print the path of the broker's configuration.",
        "The file need not exist: without it, all options have their defaults.",
        examples: "\"${EDITOR:-vi}\" \"$(watchword config path)\"")

    @Flag(help: "Print the path as JSON.")
    var json = false

    func run() throws {
        guard let path = ConfigurationLocation.path(environment: Environment.text) else {
            throw refusal("no path for the configuration; set $HOME or $XDG_CONFIG_HOME to an absolute path")
        }
        print(json ? (["path": .string(path)] as JSON).line : path)
    }
}
