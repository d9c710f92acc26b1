import ArgumentParser
import CPlatform
import Glibc
import JSONText
import WatchwordProtocol

/// A password that is to be stored, or the passphrase of a lock: typed, twice where it is new, or read from standard input.
enum PasswordEntry {
    /// Each ends the program with one line when there is no password.
    static func atTerminal(for user: String, interrupt: Int32) throws -> Secret {
        guard let terminal = Terminal() else {
            throw refusal(
                "There is no terminal to ask for the password at. Write it to standard input, with --password-stdin.")
        }
        return try twice("Password for \(user.shortened): ", at: terminal, interrupt)
    }

    /// To lock with (typed twice), or to unlock.
    static func passphrase(isNew: Bool, interrupt: Int32) throws -> Secret {
        guard let terminal = Terminal() else {
            throw refusal(
                "There is no terminal to ask for the passphrase at. Write it to standard input, with --passphrase-stdin."
            )
        }
        return try isNew
            ? twice("New passphrase: ", at: terminal, interrupt)
            : checked(line("Passphrase: ", at: terminal, interrupt))
    }

    private static func twice(_ prompt: String, at terminal: borrowing Terminal, _ interrupt: Int32) throws -> Secret {
        let first = try line(prompt, at: terminal, interrupt)
        let second = try line("The same again: ", at: terminal, interrupt)
        guard first == second else { throw refusal("The two are not the same, and nothing was done. Try again.") }
        return try checked(first)
    }

    private static func line(_ prompt: String, at terminal: borrowing Terminal, _ interrupt: Int32) throws -> Secret {
        switch terminal.readLine(prompt, echo: false, interrupt: interrupt, broker: -1, isStillOpen: { true }) {
        case .text(let text): return text
        case .end:
            terminal.show("\n")
            throw refusal("No password was given, and nothing was done.")
        case .interrupted, .withdrawn:
            terminal.show("\n")
            throw ExitCode(128 + SIGINT)
        }
    }

    /// The first line; what follows it is not read as part of the password.
    static func fromStandardInput() throws -> Secret {
        guard isatty(STDIN_FILENO) == 0 else {
            throw refusal("Standard input is a terminal, which would show the password. Leave out --password-stdin.")
        }
        let room = Limits.credentialBytes + 2
        var problem: String?
        let password = Secret(capacity: room) { block in
            var count = 0
            while count < room && !block[..<count].contains(newline) {
                let received = read(STDIN_FILENO, block.baseAddress?.advanced(by: count), room - count)
                if received < 0 && errno == EINTR { continue }
                if received < 0 { problem = "Standard input cannot be read: \(String(cString: strerror(errno)))." }
                guard received > 0 else { break }
                count += received
            }
            if count == 0 { problem = problem ?? "Standard input is empty: there is no password to store." }
            let end = block[..<count].firstIndex(of: newline) ?? count
            let hasReturn = end > 0 && block[end - 1] == UInt8(ascii: "\r")
            return hasReturn ? end - 1 : end
        }
        if let problem { throw refusal(problem) }
        return try checked(password)
    }

    private static let newline = UInt8(ascii: "\n")

    /// Says before the broker does what cannot be a password.
    private static func checked(_ password: Secret) throws -> Secret {
        guard password.count <= Limits.credentialBytes else {
            throw refusal("The password is longer than \(Limits.credentialBytes) bytes.")
        }
        guard password.withUnsafeBytes({ JSON.string(secret: $0) }) != nil else {
            throw refusal("The password is not UTF-8, and cannot be stored.")
        }
        guard !password.withUnsafeBytes({ bytes in bytes.contains { $0 < 0x20 || $0 == 0x7F } }) else {
            throw refusal("The password holds a control character, which no server takes.")
        }
        return password
    }
}
