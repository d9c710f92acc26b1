import ArgumentParser
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

    func run() throws {
        BrokerLauncher.become(["--check-config"] + (file.map { ["--config=\($0)"] } ?? []))
        complain("watchwordd was not found beside this program or in PATH. Install it, or put its folder into PATH.")
        throw ExitCode(ExitStatus.failedToStart)
    }
}
