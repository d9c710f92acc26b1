import ArgumentParser
import Glibc
import Logging
import WatchwordProtocol

/// The command line of the daemon, with its help.
struct DaemonCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watchwordd",
        abstract: "Credential broker: make HTTP requests for a user's programs and log in for them.",
        discussion: """
            Listens on a Unix socket for JSON-RPC requests. SIGTERM and SIGINT stop it gracefully; a second signal stops it at \
            once. SIGHUP reloads the configuration; SIGUSR1 clears the session. \
            Exit status: 0 after a stop, 3 if another broker is running, 4 if the service manager's socket was removed, 64 for \
            invalid arguments, 1 for other errors.
            """,
        version: WatchwordVersion.current)

    @Option(
        help: ArgumentHelp(
            "Listen here instead of at $WATCHWORD_SOCKET or in the user's runtime directory.", valueName: "path"))
    var socket: String?

    @Option(
        help: ArgumentHelp(
            "Read this configuration file instead of watchword/config.toml in $XDG_CONFIG_HOME or ~/.config.",
            valueName: "file"))
    var config: String?

    @Flag(help: "Only check the configuration: list each error by line and key, and exit with 1 if there is one.")
    var checkConfig = false

    @Option(help: ArgumentHelp("Trust the certificates in this PEM file instead of the system's.", valueName: "file"))
    var caFile: String?

    @Option(
        help: ArgumentHelp("Log level: trace, debug, info, notice, warning, error or critical.", valueName: "level"))
    var logLevel = Logger.Level.notice.rawValue

    @Option(
        help: ArgumentHelp(
            "Write \"ready\" to this descriptor once the socket listens, or the reason why the start failed.",
            valueName: "descriptor"))
    var readyFd: Int32?

    @Option(
        help: ArgumentHelp(
            "Time limit for the answer to a challenge, instead of the configured one.",
            valueName: "milliseconds"))
    var challengeDeadlineMs: Int?

    private var options: DaemonOptions {
        DaemonOptions(
            socket: socket, config: config, caFile: caFile, logLevel: logLevel, readyFd: readyFd,
            challengeDeadlineMs: challengeDeadlineMs)
    }

    func validate() throws {
        if let problem = options.problem { throw ValidationError(problem) }
    }

    func run() throws {
        if checkConfig { return try ConfigurationSource(explicit: config).check() }
        if let code = Daemon(options).run() { throw code }
    }
}

/// The options of a start. `DaemonCommand` describes them.
struct DaemonOptions {
    var socket: String?
    var config: String?
    var caFile: String?
    var logLevel = Logger.Level.notice.rawValue
    var readyFd: Int32?
    var challengeDeadlineMs: Int?

    /// The reason why the values are invalid, and what to do; `nil` if they are valid.
    var problem: String? {
        if let readyFd, readyFd <= 2 || fcntl(readyFd, F_GETFD) < 0 {
            return "--ready-fd must be an open descriptor above 2"
        }
        guard Logger.Level(rawValue: logLevel) != nil else {
            return "--log-level must be one of: \(Logger.Level.allCases.map(\.rawValue).joined(separator: ", "))"
        }
        if let challengeDeadlineMs, !(1...86_400_000).contains(challengeDeadlineMs) {
            return "--challenge-deadline-ms must be between 1 and 86400000"
        }
        if let caFile, access(caFile, R_OK) != 0 {
            return "cannot read \(caFile) (--ca-file): \(String(cString: strerror(errno)))"
        }
        return nil
    }
}

extension DaemonOptions {
    /// Parses arguments that are valid, and all of the form `--name value`. Returns `nil` for any others, which are for
    /// ArgumentParser: it takes one and a half of the nine milliseconds of a start.
    init?(plain arguments: some Sequence<String>) {
        self.init()
        var rest = arguments.makeIterator()
        while let name = rest.next() {
            guard let value = rest.next(), !value.hasPrefix("-") else { return nil }
            switch name {
            case "--socket": socket = value
            case "--config": config = value
            case "--ca-file": caFile = value
            case "--log-level": logLevel = value
            case "--ready-fd":
                guard let number = Int32(value) else { return nil }
                readyFd = number
            case "--challenge-deadline-ms":
                guard let number = Int(value) else { return nil }
                challengeDeadlineMs = number
            default: return nil
            }
        }
        guard problem == nil else { return nil }
    }
}
