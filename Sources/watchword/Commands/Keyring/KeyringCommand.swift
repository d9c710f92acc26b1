import ArgumentParser

struct KeyringCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keyring", abstract: "The keyring of the desktop, as the broker sees it.",
        discussion: """
            Example:
              watchword keyring status
            """,
        subcommands: [KeyringStatusCommand.self, KeyringUnlockCommand.self])
}
