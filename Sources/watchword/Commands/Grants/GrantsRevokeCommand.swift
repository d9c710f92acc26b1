import ArgumentParser
import JSONText
import WatchwordProtocol

struct GrantsRevokeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke",
        abstract: "Revoke consent decisions, so that you are asked again.",
        discussion: """
            Examples:
              watchword grants revoke g3
              watchword grants revoke --program flatpak:org.gnome.Maps
              watchword grants revoke --all
            """)

    @Argument(
        help: "An id from the first column of: watchword grants list",
        completion: .listed(by: GrantList(), "grants", "id"))
    var id: String?

    @Option(
        help: ArgumentHelp("Revoke all grants of a program, as named in the list.", valueName: "program"),
        completion: .listed(by: GrantList(), "grants", "subject", "id"))
    var program: String?

    @Flag(help: "Revoke all grants.")
    var all = false

    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func validate() throws { _ = try params() }

    func run() throws {
        let result = try broker.call(params())
        let count = result["removed"]?.integer ?? 0
        guard count > 0 else {
            throw refusal("no such grant; show all with: watchword grants list")
        }
        output.show(result, "\(counted(count, "grant")) revoked")
    }

    private func params() throws -> GrantRevoke {
        switch (id, program, all) {
        case (let id?, nil, false):
            guard id.hasPrefix("g"), let number = Int(id.dropFirst()), number > 0 else {
                throw ValidationError("ID must be an id like g3 from the first column of: watchword grants list")
            }
            return GrantRevoke(id: number)
        case (nil, let program?, false): return GrantRevoke(subject: ExactText(program))
        case (nil, nil, true): return GrantRevoke()
        default: throw ValidationError("give one of: ID, --program PROGRAM, --all")
        }
    }
}
