import ArgumentParser
import JSONText
import WatchwordProtocol

struct SessionClearCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Forget the log-ins of the session: all, or those of one site.",
        discussion: """
            The keyring keeps what it has.

            Examples:
              watchword session clear
              watchword session clear https://intranet.example
              watchword session clear --since 1h
            """)

    @Argument(help: "A URL like https://host:port; a path does not count.")
    var site: String?

    @Option(
        help: ArgumentHelp(
            "Only what was remembered since then: 2026-11-21T17:20 (UTC), or how long ago: 15m, 2h.",
            valueName: "time"))
    var since: LogStart?

    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func validate() throws { _ = try site.map { try Site($0) } }

    func run() throws {
        let params = SessionClearParams(
            origin: try site.map { try Site($0).origin }, since: since.map { .milliseconds($0.milliseconds) })
        let result = try broker.call(.sessionClear, params.json)
        let count = result["removed"]?.integer ?? 0
        output.show(result, count == 1 ? "1 log-in is forgotten." : "\(count) log-ins are forgotten.")
    }
}
