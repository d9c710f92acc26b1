import ArgumentParser
import BrokerSocket
import WatchwordCore

/// Why the daemon did not start, in one line, with its exit code.
struct StartFailure: Error {
    let text: String
    let exitCode: ExitCode

    init(_ text: String, exitCode: ExitCode = .failure) {
        self.text = text
        self.exitCode = exitCode
    }

    /// Another broker is no accident: two helpers may start one at the same moment.
    static let alreadyRunning = ExitCode(3)

    init(_ failure: SocketFailure) {
        if case .alreadyRunning = failure {
            self.init("\(failure)", exitCode: Self.alreadyRunning)
        } else {
            self.init("\(failure)")
        }
    }

    init(_ failure: TransferFailure) { self.init(failure.detail) }
}
