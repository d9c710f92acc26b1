import ArgumentParser
import CPlatform
import Glibc
import JSONText
import WatchwordProtocol

/// Entry of a password to store, or of the passphrase for the lock: typed at the terminal (twice for a new one), or read from
/// standard input. Without input, the functions print one line and throw an `ExitCode`.
enum PasswordEntry {
    /// Asks twice for the password of `user`.
    static func atTerminal(for user: String, interrupt: Int32) throws -> Secret {
        guard let terminal = Terminal() else {
            throw refusal(
                "no terminal to ask for the password; use --password-stdin, and write it to standard input")
        }
        return try twice("Password for \(user.shortened): ", at: terminal, interrupt)
    }

    /// Asks for a passphrase, twice for a new one.
    static func passphrase(isNew: Bool, interrupt: Int32) throws -> Secret {
        guard let terminal = Terminal() else {
            throw refusal(
                "no terminal to ask for the passphrase; use --passphrase-stdin, and write it to standard input"
            )
        }
        return try isNew
            ? twice("New passphrase: ", at: terminal, interrupt)
            : checked(line("Passphrase: ", at: terminal, interrupt))
    }

    private static func twice(_ prompt: String, at terminal: borrowing Terminal, _ interrupt: Int32) throws -> Secret {
        let first = try line(prompt, at: terminal, interrupt)
        let second = try line("Repeat it: ", at: terminal, interrupt)
        guard first == second else { throw refusal("the entries do not match; nothing changed") }
        return try checked(first)
    }

    private static func line(_ prompt: String, at terminal: borrowing Terminal, _ interrupt: Int32) throws -> Secret {
        switch terminal.readLine(prompt, echo: false, interrupt: interrupt) {
        case .text(let text): return text
        case .end:
            terminal.show("\n")
            throw refusal("no password entered; nothing changed")
        case .interrupted, .withdrawn:
            terminal.show("\n")
            throw ExitCode(128 + SIGINT)
        }
    }

    /// Reads the first line. Further lines are ignored.
    static func fromStandardInput() throws -> Secret {
        guard isatty(STDIN_FILENO) == 0 else {
            throw refusal(
                "standard input is a terminal, which would show what you type; use a pipe or a file, or omit the option"
            )
        }
        var error: Int32 = 0
        let input = Secret(reading: STDIN_FILENO, capacity: Limits.credentialBytes + 2, error: &error) { bytes, seen in
            bytes[seen...].contains(newline)
        }
        guard error == 0 else { throw refusal("cannot read standard input: \(String(cString: strerror(error)))") }
        guard !input.isEmpty else { throw refusal("standard input is empty; write one line to it") }
        let password = input.withUnsafeBytes { bytes in
            let end = bytes.firstIndex(of: newline) ?? bytes.count
            let hasReturn = end > 0 && bytes[end - 1] == UInt8(ascii: "\r")
            return Secret(copying: UnsafeRawBufferPointer(rebasing: bytes[..<(hasReturn ? end - 1 : end)]))
        }
        return try checked(password)
    }

    private static let newline = UInt8(ascii: "\n")

    /// Refuses an invalid password before it is sent to the broker.
    private static func checked(_ password: Secret) throws -> Secret {
        guard password.count <= Limits.credentialBytes else {
            throw refusal("password is longer than \(Limits.credentialBytes) bytes and cannot be stored")
        }
        guard password.withUnsafeBytes({ JSON.string(secret: $0) }) != nil else {
            throw refusal("password is not UTF-8 and cannot be stored")
        }
        guard !password.withUnsafeBytes({ bytes in bytes.contains { $0 < 0x20 || $0 == 0x7F } }) else {
            throw refusal("password contains a control character, which servers do not accept")
        }
        return password
    }
}
