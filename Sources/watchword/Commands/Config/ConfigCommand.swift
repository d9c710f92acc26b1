import ArgumentParser

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config", abstract: "The configuration of the broker; watchword-config(5) describes it.",
        discussion: """
            Example:
              watchword config check
            """,
        subcommands: [ConfigCheckCommand.self, ConfigPathCommand.self])
}
