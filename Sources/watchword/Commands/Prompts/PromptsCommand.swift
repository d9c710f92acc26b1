import ArgumentParser

struct PromptsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prompts",
        abstract: "The programs that agents are not asked about any more, because you have said so in a question.",
        discussion: """
            Until that is taken back, or the broker ends, their questions are put to no agent: their fetches end as they do \
            where there is no agent. Programs that run by the same interpreter are one program.

            Examples:
              watchword prompts list
              watchword prompts resume exe:/usr/bin/mytool
            """,
        subcommands: [PromptsListCommand.self, PromptsResumeCommand.self])
}
