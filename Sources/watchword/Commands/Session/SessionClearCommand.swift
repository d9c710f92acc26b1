import ArgumentParser
import JSONText
import WatchwordProtocol

struct SessionClearCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear",
        abstract: "Remove all logins from the session, or only the logins of one server or proxy.",
        discussion: """
            The keyring is not changed.

            Examples:
              watchword session clear
              watchword session clear https://intranet.example
              watchword session clear socks5h://proxy.example:1080
              watchword session clear --since 1h
            """)

    @Argument(help: "The URL of a server or proxy, like https://host:port or socks5h://host:port; a path is ignored.")
    var site: String?

    @Option(
        help: ArgumentHelp(
            "Only logins stored since this local time: 2026-11-21T17:20, or an age: 15m, 2h.",
            valueName: "time"))
    var since: LogStart?

    @OptionGroup var output: JSONOption
    @OptionGroup var broker: SocketOption

    func validate() throws { _ = try site.map(Self.origin) }

    private static func origin(_ site: String) throws -> String {
        guard site.lowercased().hasPrefix("socks"), SecretArguments.taken.userInfos.isEmpty else {
            return try Site(site).origin
        }
        return site
    }

    func run() throws {
        let params = SessionClear(
            origin: try site.map(Self.origin), since: since.map { .milliseconds($0.milliseconds) })
        let result = try broker.call(params)
        let count = result["removed"]?.integer ?? 0
        output.show(result, "\(counted(count, "login")) forgotten")
    }
}
