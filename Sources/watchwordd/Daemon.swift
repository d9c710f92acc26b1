import ArgumentParser
import BrokerSocket
import Configuration
import Glibc
import Logging
import WatchwordCore

/// The broker as a daemon. Runs in the foreground until a signal stops it.
@main
struct Daemon {
    private let options: DaemonOptions

    init(_ options: DaemonOptions) { self.options = options }

    static func main() {
        guard let options = DaemonOptions(plain: CommandLine.arguments.dropFirst()) else { return DaemonCommand.main() }
        exit(Daemon(options).run()?.rawValue ?? EXIT_SUCCESS)
    }

    /// Returns the exit status if the daemon did not start or ended by itself.
    func run() -> ExitCode? {
        signal(SIGPIPE, SIG_IGN)
        do {
            let service = try startedService()
            if let failure = service.run() { throw StartFailure(failure) }
            return nil
        } catch {
            let failure = error as? StartFailure ?? StartFailure("\(error)")
            let line = Array("watchwordd: \(failure.text)\n".utf8)
            _ = write(STDERR_FILENO, line, line.count)
            return failure.exitCode
        }
    }

    private func startedService() throws -> RunningService {
        do {
            let source = ConfigurationSource(explicit: options.config)
            let settings = try source.load()
            let manager = try ProcessSetup.apply(preserving: options.readyFd)
            if settings.filtersSystemCalls { try ProcessSetup.filterSystemCalls() }
            ServiceSignals.block()
            let level = Logger.Level(rawValue: options.logLevel) ?? .notice
            let log = Logger(label: "watchwordd") { label in
                LimitedLog(label: label, level: level)
            }
            let service = try RunningService(options, source, settings, manager: manager, log: log)
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
        guard let readyFd = options.readyFd else { return }
        // A pipe takes this much at once, also without a reader.
        let line = Array("\(outcome)\n".utf8.prefix(4096))
        _ = write(readyFd, line, line.count)
        close(readyFd)
    }
}

/// The reason why the daemon did not start or ended by itself, and its exit status.
struct StartFailure: Error {
    let text: String
    let exitCode: ExitCode

    init(_ text: String, exitCode: ExitCode = .failure) {
        self.text = text
        self.exitCode = exitCode
    }

    /// Another broker is running, for example because two clients have started one at the same time.
    static let alreadyRunning = ExitCode(3)

    /// The service manager's socket was removed or replaced. Restarting the daemon does not help.
    static let socketLost = ExitCode(4)

    init(_ failure: SocketFailure) {
        let code: ExitCode =
            switch failure {
            case .alreadyRunning: Self.alreadyRunning
            case .fileLost: Self.socketLost
            default: .failure
            }
        self.init("\(failure)", exitCode: code)
    }

    init(_ failure: TransferFailure) { self.init(failure.detail) }
}
