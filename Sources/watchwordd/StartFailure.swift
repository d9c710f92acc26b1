import ArgumentParser
import BrokerSocket
import WatchwordCore

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
