import ArgumentParser
import BrokerSocket
import WatchwordCore

/// Why the daemon did not start, or ended by itself, in one line, with its exit code.
struct StartFailure: Error {
    let text: String
    let exitCode: ExitCode

    init(_ text: String, exitCode: ExitCode = .failure) {
        self.text = text
        self.exitCode = exitCode
    }

    /// Another broker is no accident: two helpers may start one at the same moment.
    static let alreadyRunning = ExitCode(3)

    /// The service manager's socket is lost: starting the daemon again does not help.
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
