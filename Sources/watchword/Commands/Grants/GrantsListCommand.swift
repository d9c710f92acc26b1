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
            (grant["id"]?.string ?? "").shortened, (grant["subject"]?["id"]?.string ?? "").shortened(to: 300),
            words(grant["allow"]?.string), (grant["user"]?.string ?? "").shortened, SpaceText.site(grant),
            SpaceText.realm(grant) ?? "", SpaceText.scheme(grant) ?? "",
        ]
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
