import ArgumentParser

struct PromptsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prompts",
        abstract: "List the programs whose questions you have stopped, or allow their questions again.",
        discussion: """
            Agents do not receive questions of a stopped program until it is resumed or the broker exits. Its fetches end as \
            if there were no agent. All programs of one interpreter count as one program.

            Examples:
              watchword prompts list
              watchword prompts resume exe:/usr/bin/mytool
            """,
        subcommands: [PromptsListCommand.self, PromptsResumeCommand.self])
}
