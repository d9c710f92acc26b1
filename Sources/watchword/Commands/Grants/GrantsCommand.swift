import ArgumentParser

struct GrantsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "grants",
        abstract: "Which programs may use what is kept: those in sandboxes, or all with sharing.session = \"ask\".",
        discussion: """
            Examples:
              watchword grants list
              watchword grants revoke g3
            """,
        subcommands: [GrantsListCommand.self, GrantsRevokeCommand.self])
}
