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
            throw ExitCode(
                ExitStatus.loginDenied,
                printing:
                    "no password for \(option) \(user.shortened) and no terminal to ask for it; use \(option) user:password"
            )
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

/// The client certificate that `-E`, `--key` and `--pass` select.
enum CommandLineCertificate {
    static func make(_ taken: SecretArguments.Taken, storage: LoginStorage) throws -> CertificateCredential? {
        guard let text = taken[.certificate] else { return nil }
        let (file, passphrase) = split(text)
        let paths = [file, taken[.key]].compactMap(\.self).map(absolute)
        for path in paths { try check(path) }
        return CertificateCredential(
            certificate: paths[0], privateKey: paths.count > 1 ? paths[1] : nil,
            passphrase: taken[.passphrase] ?? passphrase, persistence: persistence(storage))
    }

    /// The persistence of a client certificate: at most the session, even with `--keep keyring`.
    static func persistence(_ storage: LoginStorage) -> Persistence { storage == .none ? .none : .forSession }

    /// Splits the value of `-E` as curl does: the first colon ends the file name, unless it is escaped as `\:`; `\\` stands
    /// for a backslash. A `pkcs11:` URI is not split.
    static func split(_ text: Secret) -> (file: Secret, passphrase: Secret?) {
        text.withUnsafeBytes { bytes in
            if bytes.starts(with: "pkcs11:".utf8) { return (text, nil) }
            let (colon, backslash) = (UInt8(ascii: ":"), UInt8(ascii: "\\"))
            var (index, end) = (0, Int?.none)
            let file = Secret(capacity: bytes.count) { destination in
                var count = 0
                while index < bytes.count {
                    if bytes[index] == colon {
                        end = index
                        break
                    }
                    let isEscape =
                        bytes[index] == backslash && index + 1 < bytes.count
                        && [colon, backslash].contains(bytes[index + 1])
                    if isEscape { index += 1 }
                    destination[count] = bytes[index]
                    (count, index) = (count + 1, index + 1)
                }
                return count
            }
            return (file, end.map { Secret(copying: UnsafeRawBufferPointer(rebasing: bytes[($0 + 1)...])) })
        }
    }

    /// Returns `text` as an absolute path, because the broker has its own working directory. Expands `~/`. Leaves a `pkcs11:`
    /// URI unchanged.
    static func absolute(_ text: Secret) -> Secret {
        text.withUnsafeBytes { bytes in
            if bytes.first == UInt8(ascii: "/") || bytes.starts(with: "pkcs11:".utf8) { return text }
            let isInHome = bytes.starts(with: "~/".utf8)
            let folder = isInHome ? getenv("HOME").map { String(cString: $0) } : currentFolder()
            guard let folder else { return text }
            let rest = isInHome ? UnsafeRawBufferPointer(rebasing: bytes[2...]) : bytes
            return Secret(joining: [.text("\(folder)/"), .secret(Secret(copying: rest))])
        }
    }

    private static func currentFolder() -> String? {
        guard let folder = getcwd(nil, 0) else { return nil }
        defer { free(folder) }
        return String(cString: folder)
    }

    /// Reports an unreadable file before the user is asked for anything.
    private static func check(_ path: Secret) throws {
        let file = path.withUnsafeBytes { $0.first == UInt8(ascii: "/") ? String(decoding: $0, as: UTF8.self) : nil }
        guard let file, access(file, R_OK) != 0 else { return }
        throw ExitCode(
            ExitStatus.certificateProblem,
            printing: "cannot read \(file.shortened): \(String(cString: strerror(errno)))")
    }
}
