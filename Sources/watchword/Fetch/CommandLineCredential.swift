import ArgumentParser
import Glibc
import WatchwordProtocol

/// Makes the credential of `-u` or `-U`. Asks at the terminal for a missing password.
enum CommandLineCredential {
    static func make(
        _ text: Secret, option: String, persistence: Persistence, interrupt: Int32
    ) throws -> LoginCredential {
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
            return LoginCredential(user: user, password: password, persistence: persistence)
        }
        guard let terminal = Terminal() else {
            printError(
                "no password for \(option) \(user.shortened) and no terminal to ask for it; use \(option) user:password"
            )
            throw ExitCode(ExitStatus.loginDenied)
        }
        let whose = option == "-U" ? " at the proxy" : ""
        let prompt = "Password for \(user.shortened)\(whose): "
        switch terminal.readLine(prompt, echo: false, interrupt: interrupt) {
        case .text(let password):
            return LoginCredential(user: user, password: password, persistence: persistence)
        case .end, .withdrawn, .interrupted:
            terminal.show("\n")
            throw ExitCode(128 + SIGINT)
        }
    }
}
