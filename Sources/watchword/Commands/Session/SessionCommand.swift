import ArgumentParser

struct SessionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "What is remembered until the end of the session.",
        discussion: """
            Example:
              watchword session clear
            """,
        subcommands: [SessionClearCommand.self])
}
