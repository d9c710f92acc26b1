import ArgumentParser
import Glibc
import WatchwordProtocol

@main
struct Main {
    /// Passwords leave the argument list before anything else looks at it.
    static func main() {
        let arguments = SecretArguments.take()
        prepareProcess()
        WatchwordCommand.main(arguments)
    }

    private static func prepareProcess() {
        // A reader that goes away and a file that may not grow are errors of one write: what else is written has to be tidied up.
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        // Where one is missing, the next file or socket would be taken for it. These fail when they are used.
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }
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
