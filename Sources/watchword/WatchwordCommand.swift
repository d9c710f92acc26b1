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
              watchword credentials list
              watchword lock
            """,
        version: WatchwordVersion.current,
        subcommands: [
            FetchCommand.self, CredentialsCommand.self, SessionCommand.self, KeyringCommand.self, LockCommand.self,
            UnlockCommand.self, StatusCommand.self, ConfigCommand.self,
        ])
}
