import ArgumentParser
import WatchwordProtocol

@main
struct Main {
    /// Passwords leave the argument list before anything else looks at it.
    static func main() { WatchwordCommand.main(SecretArguments.take()) }
}

struct WatchwordCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watchword",
        abstract: "Fetches what needs a log-in, through the broker that remembers it.",
        discussion: """
            Examples:
              watchword fetch https://intranet.example/report
              watchword fetch -o report.csv -L https://intranet.example/report.csv
              watchword status
            """,
        version: WatchwordVersion.current,
        subcommands: [FetchCommand.self, StatusCommand.self])
}

/// Where the broker is; common to all sub-commands.
struct BrokerOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The broker's socket, in place of $WATCHWORD_SOCKET or the user's run-time folder.", valueName: "path"))
    var socket: String?

    @Flag(help: "Do not start a broker when none runs.")
    var noStart = false
}
