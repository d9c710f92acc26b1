import ArgumentParser
import JSONText
import WatchwordProtocol

struct GrantsListCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "List your consent decisions: which program may use which login, and for how long.",
        discussion: """
            Example:
              watchword grants list
            """)

    @OptionGroup var output: JSONOption

    @OptionGroup var broker: SocketOption

    func run() throws {
        let result = try broker.call(GrantList())
        if output.json { return print(result.line) }
        let rows = (result["grants"]?.elements ?? []).map(Self.row)
        print(rows.isEmpty ? "No consent decisions." : TextTable.text([Self.heading] + rows))
    }

    private static let heading = ["ID", "PROGRAM", "ALLOWED", "USER", "SITE", "REALM", "SCHEME"]

    private static func row(_ grant: JSON) -> [String] {
        [
            (grant["id"]?.string ?? "").shortened, program(grant["subject"]),
            words(grant["allow"]?.string), (grant["user"]?.string ?? "").shortened, SpaceText.site(grant),
            SpaceText.realm(grant) ?? "", SpaceText.scheme(grant) ?? "",
        ]
    }

    /// Returns the subject, followed by the script of an interpreter.
    private static func program(_ subject: JSON?) -> String {
        let parts = [subject?["id"]?.string, subject?["script"]?["path"]?.string]
        return parts.compactMap { $0?.shortened(to: 300) }.joined(separator: " ")
    }

    private static func words(_ consent: String?) -> String {
        switch consent {
        case "session": "for the session"
        case "always": "always"
        case "no": "no"
        case let other: (other ?? "").shortened
        }
    }
}
