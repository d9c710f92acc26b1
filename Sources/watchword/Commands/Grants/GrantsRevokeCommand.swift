import ArgumentParser
import JSONText
import WatchwordProtocol

struct GrantsRevokeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Take back what you have said, yes or no: the next time you are asked again.",
        discussion: """
            Examples:
              watchword grants revoke g3
              watchword grants revoke --program flatpak:org.gnome.Maps
              watchword grants revoke --all
            """)

    @Argument(help: "One grant: an id out of the first column of the list.")
    var id: String?

    @Option(help: ArgumentHelp("All of a program, as the list names it.", valueName: "program"))
    var program: String?

    @Flag(help: "All of all programs.")
    var all = false

    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func validate() throws { _ = try params() }

    func run() throws {
        let result = try broker.call(.grantRevoke, params().json)
        let count = result["removed"]?.integer ?? 0
        guard count > 0 else {
            complain("There is no such grant. These are there: watchword grants list")
            throw ExitCode(ExitStatus.refused)
        }
        output.show(result, count == 1 ? "1 grant is revoked." : "\(count) grants are revoked.")
    }

    private func params() throws -> GrantRevokeParams {
        switch (id, program, all) {
        case (let id?, nil, false):
            guard id.hasPrefix("g"), let number = Int(id.dropFirst()), number > 0 else {
                throw ValidationError("ID is one like g3, out of the first column of: watchword grants list")
            }
            return GrantRevokeParams(id: number)
        case (nil, let program?, false): return GrantRevokeParams(subject: ExactText(program))
        case (nil, nil, true): return GrantRevokeParams()
        default: throw ValidationError("Name either one ID, or --program PROGRAM, or --all.")
        }
    }
}
