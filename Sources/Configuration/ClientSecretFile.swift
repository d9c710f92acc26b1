internal import Glibc
internal import WatchwordCore
internal import WatchwordProtocol

/// A file with the secret of an OAuth client: `client-secret-file` of a table `[oauth."URL"]`.
public struct ClientSecretFile: Sendable, Equatable {
    /// The resource of the rule.
    let resource: String
    /// The path, beginning with "/" or "~/".
    let path: String
    /// The line and the key of the option.
    let line: Int
    let key: String
}

extension Settings {
    /// Reads the files with the secrets of clients into their rules. A rule whose file has a problem becomes unusable, and the
    /// problem is added to `fileProblems`.
    ///
    /// - Parameter home: the user's home directory; `nil` if it is unknown.
    public mutating func readClientSecrets(home: String?) {
        for file in clientSecretFiles {
            guard let index = oauthRules.firstIndex(where: { $0.resource == file.resource }) else { continue }
            do throws(Refusal) {
                oauthRules[index].clientSecret = try file.read(home: home)
                oauthRules[index].isUsable = true
            } catch {
                oauthRules[index].isUsable = false
                fileProblems.append(SettingsProblem(line: file.line, key: file.key, error.text))
            }
        }
    }

    /// The settings without the secrets of clients, for a copy that is stored.
    public var withoutSecrets: Settings {
        var settings = self
        for index in settings.oauthRules.indices { settings.oauthRules[index].clientSecret = nil }
        return settings
    }
}

extension ClientSecretFile {
    /// Reads the secret, without the line break at its end, directly into protected memory. Can block if the file system hangs.
    /// - Throws: `Refusal`, whose text does not quote the file.
    func read(home: String?) throws(Refusal) -> Secret {
        let path = try absolute(home)
        let file: CarefulFile
        do throws(CarefulFile.Failure) { file = try CarefulFile(path) } catch {
            if case .systemCall(let number) = error { throw Self.unreadable(path, number) }
            throw Refusal("\(path) \(error.text)")
        }
        let status = file.status
        if let problem = Self.problem(mode: status.st_mode, owner: status.st_uid, user: geteuid(), path: path) {
            throw Refusal(problem)
        }
        let content = try Self.content(file.descriptor, path)
        guard content.count <= Limits.clientSecretBytes else {
            throw Refusal("\(path) is larger than \(Limits.clientSecretBytes) bytes; write only the secret into it")
        }
        return try content.withUnsafeBytes { bytes throws(Refusal) in
            let secret = bytes.last == 0x0A ? UnsafeRawBufferPointer(rebasing: bytes.dropLast()) : bytes
            guard !secret.isEmpty else { throw Refusal("\(path) is empty; write the secret of the client into it") }
            guard secret.allSatisfy(OAuthDraft.isVisible) else {
                throw Refusal(
                    "\(path) contains a character that a client secret cannot have (RFC 6749 appendix A.2); write only the "
                        + "secret into it, in one line")
            }
            return Secret(copying: secret)
        }
    }

    private func absolute(_ home: String?) throws(Refusal) -> String {
        guard path.hasPrefix("~/") else { return path }
        guard let home, home.hasPrefix("/") else {
            throw Refusal("cannot find \(path): HOME is not set; use an absolute path")
        }
        return "\(home)\(path.dropFirst())"
    }

    /// Why the owner or mode of the file is not acceptable; `nil` if both are.
    static func problem(mode: mode_t, owner: uid_t, user: uid_t, path: String) -> String? {  // guard: oauth-secret-file
        if owner != user && owner != 0 {
            return "\(path) belongs to user \(owner); replace it with a file of your own"
        }
        if mode & 0o077 != 0 {
            let text = String(mode & 0o7777, radix: 8)
            return "other users have access to \(path) (mode 0\(text)); run: chmod 600 '\(path)'"
        }
        return nil
    }

    /// Reads the file into a secret of one byte more than allowed, so that a file that is too large is detected.
    private static func content(_ descriptor: Int32, _ path: String) throws(Refusal) -> Secret {
        var error: Int32 = 0
        let content = Secret(reading: descriptor, capacity: Limits.clientSecretBytes + 1, error: &error)
        guard error == 0 else { throw unreadable(path, error) }
        return content
    }

    private static func unreadable(_ path: String, _ error: Int32) -> Refusal {
        Refusal(
            "cannot read \(path): \(String(cString: strerror(error))); create it with mode 0600, or correct the path")
    }
}
