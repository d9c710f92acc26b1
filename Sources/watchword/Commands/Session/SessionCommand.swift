import ArgumentParser

struct SessionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "Manage the logins of the session.",
        discussion: """
            Example:
              watchword session clear
            """,
        subcommands: [SessionClearCommand.self])
}
