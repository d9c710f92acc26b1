import ArgumentParser
import BrokerSocket
import Configuration
import Glibc
import Logging
import WatchwordProtocol

/// The broker as a program: runs in the foreground until it is told to stop.
@main
struct Daemon: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watchwordd",
        abstract: "Fetches what needs a log-in, for the programs of one user.",
        discussion: """
            Listens on a Unix socket for JSON-RPC requests. SIGTERM and SIGINT stop it gracefully; a second one at once. \
            SIGHUP reads the configuration anew; SIGUSR1 forgets all credentials of the session. \
            Exit codes: 0 after a stop, 3 when another broker is running, 4 when the service manager's socket was removed, 1 for \
            everything else.
            """,
        version: WatchwordVersion.current)

    @Option(
        help: ArgumentHelp(
            "Where to listen, in place of $WATCHWORD_SOCKET or the user's run-time folder.", valueName: "path"))
    var socket: String?

    @Option(
        help: ArgumentHelp(
            "The configuration, in place of watchword/config.toml below $XDG_CONFIG_HOME or ~/.config.",
            valueName: "file"))
    var config: String?

    @Flag(help: "Only check the configuration: name each mistake by line and key, and exit with 1 if there is one.")
    var checkConfig = false

    @Option(help: ArgumentHelp("Certificates (PEM) to be trusted in place of the system's.", valueName: "file"))
    var caFile: String?

    @Option(help: ArgumentHelp("trace, debug, info, notice, warning, error or critical.", valueName: "level"))
    var logLevel = Logger.Level.notice.rawValue

    @Option(help: ArgumentHelp("Write \"ready\" to this descriptor once the socket listens.", valueName: "descriptor"))
    var readyFd: Int32?

    @Option(
        help: ArgumentHelp(
            "How long a challenge waits for its answer, in place of the configuration's limit.",
            valueName: "milliseconds"))
    var challengeDeadlineMs: Int?

    func validate() throws {
        if let readyFd, readyFd <= 2 { throw ValidationError("--ready-fd takes a descriptor above 2.") }
        guard Logger.Level(rawValue: logLevel) != nil else {
            throw ValidationError(
                "--log-level takes one of: \(Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")).")
        }
        if let challengeDeadlineMs, !(1...86_400_000).contains(challengeDeadlineMs) {
            throw ValidationError("--challenge-deadline-ms takes 1 to 86400000.")
        }
        if let caFile, access(caFile, R_OK) != 0 {
            throw ValidationError(
                "The file \(caFile) given as --ca-file cannot be read: \(String(cString: strerror(errno))).")
        }
    }

    func run() throws {
        if checkConfig { return try ConfigurationSource(explicit: config).check() }
        do {
            let source = ConfigurationSource(explicit: config)
            let settings = try source.load()
            let manager = try ProcessSetup.apply(keeping: readyFd)
            if settings.filtersSystemCalls { try ProcessSetup.filterSystemCalls() }
            ServiceSignals.block()
            let level = Logger.Level(rawValue: logLevel) ?? .notice
            let log = Logger(label: "watchwordd") { label in
                var handler = StreamLogHandler.standardError(label: label)
                handler.logLevel = level
                return handler
            }
            let service = try RunningService(self, source, settings, manager: manager, log: log)
            announceReady()
            manager.say(.ready(status: "Listening."))
            if let failure = service.run() { throw StartFailure(failure) }
        } catch let failure as StartFailure {
            let line = Array("watchwordd: \(failure.text)\n".utf8)
            _ = write(STDERR_FILENO, line, line.count)
            throw failure.exitCode
        }
    }

    /// Whoever started the broker waits for this, or for the end of the descriptor.
    private func announceReady() {
        guard let readyFd else { return }
        let text = Array("ready\n".utf8)
        _ = write(readyFd, text, text.count)
        close(readyFd)
    }
}
