import ArgumentParser
import JSONText
import WatchwordProtocol

struct SessionClearCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Remove all logins from the session, or only the logins of one site.",
        discussion: """
            The keyring is not changed.

            Examples:
              watchword session clear
              watchword session clear https://intranet.example
              watchword session clear --since 1h
            """)

    @Argument(help: "A URL like https://host:port; a path is ignored.")
    var site: String?

    @Option(
        help: ArgumentHelp(
            "Only logins stored since this local time: 2026-11-21T17:20, or an age: 15m, 2h.",
            valueName: "time"))
    var since: LogStart?

    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func validate() throws { _ = try site.map { try Site($0) } }

    func run() throws {
        let params = SessionClear(
            origin: try site.map { try Site($0).origin }, since: since.map { .milliseconds($0.milliseconds) })
        let result = try broker.call(params)
        let count = result["removed"]?.integer ?? 0
        output.show(result, "\(counted(count, "login")) forgotten")
    }
}
