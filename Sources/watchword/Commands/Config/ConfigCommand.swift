import ArgumentParser

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "Check or locate the broker's configuration; see watchword-config(5).",
        discussion: """
            Example:
              watchword config check
            """,
        subcommands: [ConfigCheckCommand.self, ConfigPathCommand.self])
}
