import ArgumentParser
import CPlatform
import Glibc
import WatchwordProtocol

@main
struct Main {
    /// Passwords leave the argument list before anything else looks at it.
    static func main() {
        let arguments = calledAs + SecretArguments.take()
        prepareProcess()
        guard argumentsAreText else {
            complain("An argument is not UTF-8. Put what is to be sent into a file, and give its name.")
            WatchwordCommand.exit(
                withError: arguments.first == "fetch" ? ExitCode(ExitStatus.usage) : .validationFailure)
        }
        do {
            if SecretArguments.taken.isEmpty, let quick = QuickFetch(arguments) { return try quick.run() }
            var command = try parse(arguments)
            try command.run()
        } catch let refusal as CurlArguments.Refusal {
            complain(refusal.text)
            WatchwordCommand.exit(withError: ExitCode(ExitStatus.usage))
        } catch {
            // A wrong command line is 2 for curl, and 64 for the commands that curl does not have.
            if arguments.first == "fetch", WatchwordCommand.exitCode(for: error) == .validationFailure {
                StandardError.write(line: WatchwordCommand.fullMessage(for: error))
                WatchwordCommand.exit(withError: ExitCode(ExitStatus.usage))
            }
            WatchwordCommand.exit(withError: error)
        }
    }

    /// `fetch` is read by its own parser first: that of the whole tree of commands takes twice as long.
    private static func parse(_ arguments: [String]) throws -> any ParsableCommand {
        guard arguments.first == "fetch" else { return try WatchwordCommand.parseAsRoot(arguments) }
        let read = try CurlArguments(Array(arguments.dropFirst()))
        CurlArguments.current = read
        return try (try? FetchCommand.parse(read.rewritten)) ?? WatchwordCommand.parseAsRoot(["fetch"] + read.rewritten)
    }

    /// git and others find their helpers by the name of a program.
    private static var calledAs: [String] {
        let name = CommandLine.argc > 0 ? CommandLine.unsafeArgv[0].map { String(cString: $0) } ?? "" : ""
        switch name.split(separator: "/").last {
        case "git-credential-watchword": return ["git-credential"]
        case "watchword-askpass": return ["askpass"]
        default: return []
        }
    }

    /// Something else than what was given would be sent, or written to: Swift's texts hold nothing but UTF-8.
    private static var argumentsAreText: Bool {
        (0..<Int(CommandLine.argc)).allSatisfy { index in
            CommandLine.unsafeArgv[index].map { String(validatingCString: $0) != nil } ?? true
        }
    }

    private static func prepareProcess() {
        watchword_keep_crashes_silent()
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
            UnlockCommand.self, AgentCommand.self, GrantsCommand.self, PromptsCommand.self, LogCommand.self,
            StatusCommand.self,
            DoctorCommand.self, ConfigCommand.self, GitCredentialCommand.self, AskpassCommand.self,
        ])
}
