import ArgumentParser
import JSONText
import WatchwordProtocol

struct PromptsResumeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Allow the questions of a program, or of all programs, again.",
        discussion: """
            Examples:
              watchword prompts resume exe:/usr/bin/mytool
              watchword prompts resume --all
            """)

    @Argument(
        help: "A program from the first column of: watchword prompts list",
        completion: .listed(by: PromptList(), "stopped", "subject"))
    var program: String?

    @Flag(help: "Allow the questions of all programs again.")
    var all = false

    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func validate() throws {
        guard (program == nil) == all else { throw ValidationError("give either a PROGRAM or --all") }
    }

    func run() throws {
        let result = try broker.call(PromptResume(subject: program.map { ExactText($0) }))
        let count = result["resumed"]?.integer ?? 0
        guard count > 0 else {
            throw refusal("no stopped program has this name; show all with: watchword prompts list")
        }
        output.show(result, "\(counted(count, "program")) resumed")
    }
}
