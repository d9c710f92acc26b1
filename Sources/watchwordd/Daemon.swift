import ArgumentParser
import BrokerSocket
import Configuration
import Glibc
import Logging
import WatchwordProtocol

/// The broker as a daemon. Runs in the foreground until a signal stops it.
@main
struct Daemon: ParsableCommand {
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

    func validate() throws {
        if let readyFd, readyFd <= 2 || fcntl(readyFd, F_GETFD) < 0 {
            throw ValidationError("--ready-fd must be an open descriptor above 2")
        }
        guard Logger.Level(rawValue: logLevel) != nil else {
            throw ValidationError(
                "--log-level must be one of: \(Logger.Level.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        if let challengeDeadlineMs, !(1...86_400_000).contains(challengeDeadlineMs) {
            throw ValidationError("--challenge-deadline-ms must be between 1 and 86400000")
        }
        if let caFile, access(caFile, R_OK) != 0 {
            throw ValidationError(
                "cannot read \(caFile) (--ca-file): \(String(cString: strerror(errno)))")
        }
    }

    func run() throws {
        if checkConfig { return try ConfigurationSource(explicit: config).check() }
        signal(SIGPIPE, SIG_IGN)
        do {
            let service = try startedService()
            if let failure = service.run() { throw StartFailure(failure) }
        } catch let failure as StartFailure {
            let line = Array("watchwordd: \(failure.text)\n".utf8)
            _ = write(STDERR_FILENO, line, line.count)
            throw failure.exitCode
        }
    }

    private func startedService() throws -> RunningService {
        do {
            let source = ConfigurationSource(explicit: config)
            let settings = try source.load()
            let manager = try ProcessSetup.apply(preserving: readyFd)
            if settings.filtersSystemCalls { try ProcessSetup.filterSystemCalls() }
            ServiceSignals.block()
            let level = Logger.Level(rawValue: logLevel) ?? .notice
            let log = Logger(label: "watchwordd") { label in
                var handler = StreamLogHandler.standardError(label: label)
                handler.logLevel = level
                return handler
            }
            let service = try RunningService(self, source, settings, manager: manager, log: log)
            service.reportReady { [self] in reportStart("ready") }
            return service
        } catch let failure as StartFailure {
            reportStart(failure.text)
            throw failure
        }
    }

    /// Writes the outcome to the descriptor of `--ready-fd`, and closes it. The process that started the broker waits for
    /// this.
    private func reportStart(_ outcome: String) {
        guard let readyFd else { return }
        // A pipe takes this much at once, also without a reader.
        let line = Array("\(outcome)\n".utf8.prefix(4096))
        _ = write(readyFd, line, line.count)
        close(readyFd)
    }
}
