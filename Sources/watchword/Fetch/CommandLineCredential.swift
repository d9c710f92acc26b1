import ArgumentParser
import Glibc
import WatchwordProtocol

/// The credential of `-u` and of `-U`.
enum CommandLineCredential {
    static func make(_ text: Secret, option: String, keep: Persistence, interrupt: Int32) throws -> LoginCredential {
        let (user, password) = text.withUnsafeBytes { bytes -> (ExactText, Secret?) in
            guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
                return (ExactText(String(decoding: bytes, as: UTF8.self)), nil)
            }
            return (
                ExactText(String(decoding: bytes[..<colon], as: UTF8.self)),
                Secret(copying: UnsafeRawBufferPointer(rebasing: bytes[(colon + 1)...]))
            )
        }
        if let password {
            return LoginCredential(user: user, password: password, persistence: keep)
        }
        guard let terminal = Terminal() else {
            complain("\(option) \(user.shortened) names no password, and there is no terminal to ask at.")
            throw ExitCode(ExitStatus.loginDenied)
        }
        let whose = option == "-U" ? " at the proxy" : ""
        let prompt = "Password for \(user.shortened)\(whose): "
        switch terminal.readLine(prompt, echo: false, interrupt: interrupt, broker: -1, isStillOpen: { true }) {
        case .text(let password):
            return LoginCredential(user: user, password: password, persistence: keep)
        case .end, .withdrawn, .interrupted:
            terminal.show("\n")
            throw ExitCode(128 + SIGINT)
        }
    }
}
