import ArgumentParser

struct KeyringCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keyring", abstract: "Show or unlock the desktop keyring.",
        discussion: """
            Example:
              watchword keyring status
            """,
        subcommands: [KeyringStatusCommand.self, KeyringUnlockCommand.self])
}
