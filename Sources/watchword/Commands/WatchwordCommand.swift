import ArgumentParser
import CPlatform
import Glibc
import WatchwordProtocol

@main
struct Main {
    /// Removes passwords from the argument list before anything else reads it.
    static func main() {
        let given = UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc)).dropFirst()
        let plain = CommonOptionsParser.withoutSecrets(UnsafeBufferPointer(rebasing: given))
        let arguments = calledAs + (plain ?? SecretArguments.take())
        prepareProcess()
        guard argumentsAreText else {
            printError("an argument is not UTF-8; write it to a file, and give the name of the file")
            WatchwordCommand.exit(
                withError: arguments.first == "fetch" ? ExitCode(ExitStatus.usage) : .validationFailure)
        }
        do {
            if SecretArguments.taken.isEmpty, let quick = CommonOptionsParser(arguments) { return try quick.run() }
            var command = try parse(arguments)
            try command.run()
        } catch let refusal as CurlArguments.Refusal {
            printError(refusal.text)
            WatchwordCommand.exit(withError: ExitCode(ExitStatus.usage))
        } catch {
            // The exit code for a wrong command line is 2, as in curl; for the commands other than `fetch` it is 64.
            if arguments.first == "fetch", WatchwordCommand.exitCode(for: error) == .validationFailure {
                StandardError.write(line: WatchwordCommand.fullMessage(for: error))
                WatchwordCommand.exit(withError: ExitCode(ExitStatus.usage))
            }
            if WatchwordCommand.exitCode(for: error) == .validationFailure,
                let text = SubcommandSuggestion.text(arguments)
            {
                printError(text)
                WatchwordCommand.exit(withError: ExitCode.validationFailure)
            }
            WatchwordCommand.exit(withError: error)
        }
    }

    /// Tries the parser of `fetch` first, because parsing the whole tree of commands takes twice as long.
    private static func parse(_ arguments: [String]) throws -> any ParsableCommand {
        guard arguments.first == "fetch" else { return try WatchwordCommand.parseAsRoot(arguments) }
        let read = try CurlArguments(Array(arguments.dropFirst()))
        CurlArguments.current = read
        return try (try? FetchSubcommand.parse(read.rewritten))
            ?? WatchwordCommand.parseAsRoot(["fetch"] + read.rewritten)
    }

    /// The command that the name of the program selects: git and others find their helpers by name.
    private static var calledAs: [String] {
        guard CommandLine.argc > 0, let path = CommandLine.unsafeArgv[0] else { return [] }
        let slash = strrchr(path, CInt(UInt8(ascii: "/")))
        switch String(cString: slash.map { $0 + 1 } ?? path) {
        case "git-credential-watchword": return ["git-credential"]
        case "watchword-askpass": return ["askpass"]
        default: return []
        }
    }

    /// Whether all arguments are UTF-8. A Swift `String` would replace other bytes, which would change a value or a file name.
    private static var argumentsAreText: Bool {
        (0..<Int(CommandLine.argc)).allSatisfy { index in
            CommandLine.unsafeArgv[index].map { String(validatingCString: $0) != nil } ?? true
        }
    }

    private static func prepareProcess() {
        watchword_keep_crashes_silent()
        // A closed pipe and a file size limit are errors of write(2) and must not end the process: other output needs cleanup.
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        // Otherwise the next file or socket would get the number of a closed standard descriptor. Replacements are opened for
        // the wrong direction, so that reading or writing them fails.
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY)
        }
    }
}

struct WatchwordCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "watchword", "Make HTTP requests through the Watchword broker, which logs in and remembers the login.",
        examples: "watchword fetch https://intranet.example/report",
        "watchword fetch -o report.csv -L https://intranet.example/report.csv", "watchword credentials list",
        "watchword lock",
        version: WatchwordVersion.current,
        subcommands: [
            FetchSubcommand.self, CredentialsCommand.self, SessionCommand.self, KeyringCommand.self, LockCommand.self,
            UnlockCommand.self, AgentCommand.self, GrantsCommand.self, PromptsCommand.self, LogCommand.self,
            StatusCommand.self,
            RunCommand.self, ServeCommand.self, FrontCommand.self, DoctorCommand.self, ConfigCommand.self,
            GitCredentialCommand.self, TokenCommand.self, AskpassCommand.self,
        ])
}
