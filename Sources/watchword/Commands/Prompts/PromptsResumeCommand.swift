import ArgumentParser
import JSONText
import WatchwordProtocol

struct PromptsResumeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Let a program ask again, or all programs.",
        discussion: """
            Examples:
              watchword prompts resume exe:/usr/bin/mytool
              watchword prompts resume --all
            """)

    @Argument(help: "The program, as the list names it.")
    var program: String?

    @Flag(help: "All programs.")
    var all = false

    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func validate() throws {
        guard (program == nil) == all else { throw ValidationError("Name either a PROGRAM, or --all.") }
    }

    func run() throws {
        let result = try broker.call(.promptResume, PromptResumeParams(subject: program.map { ExactText($0) }).json)
        let count = result["resumed"]?.integer ?? 0
        guard count > 0 else {
            complain("There is no such program. These are stopped: watchword prompts list")
            throw ExitCode(ExitStatus.refused)
        }
        output.show(result, count == 1 ? "1 program may ask again." : "\(count) programs may ask again.")
    }
}
