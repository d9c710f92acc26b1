import ArgumentParser

struct GrantsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "grants",
        abstract:
            "List and revoke consents. Sandboxed programs need them; with sharing.session = \"ask\", all programs do.",
        discussion: """
            Examples:
              watchword grants list
              watchword grants revoke g3
            """,
        subcommands: [GrantsListCommand.self, GrantsRevokeCommand.self])
}
