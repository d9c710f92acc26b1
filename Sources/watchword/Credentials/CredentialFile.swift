import ArgumentParser
import WatchwordProtocol

/// The logins in a netrc file (netrc(5), with curl's quoted words) or in git's credential store (git-credential-store(1)).
struct CredentialFile {
    enum Format: String, ExpressibleByArgument, CaseIterable {
        case netrc, git

        /// By the usual names of the files; `nil` for others.
        init?(file: String) {
            let name = file.split(separator: "/").last ?? ""
            switch name {
            case ".netrc", "_netrc", "netrc": self = .netrc
            case ".git-credentials", "git-credentials", "credentials": self = .git
            default: return nil
            }
        }
    }

    struct Login: Equatable {
        /// As in a URL; of netrc, which knows neither scheme nor port, the host alone.
        let site: String
        let user: ExactText
        let password: Secret
        /// What git keeps with `credential.useHttpPath`.
        var path: ExactText?
        let line: Int
    }

    struct Skipped: Equatable {
        let line: Int
        let reason: String
    }

    private(set) var logins: [Login] = []
    private(set) var skipped: [Skipped] = []

    init(_ content: Secret, _ format: Format) {
        content.withUnsafeBytes { bytes in
            switch format {
            case .netrc: readNetrc(bytes)
            case .git: readGit(bytes)
            }
        }
    }

    // MARK: netrc

    private struct Entry {
        let line: Int
        /// `nil` for `default`.
        let machine: String?
        var user: ExactText?
        var password: Secret?
    }

    private mutating func readNetrc(_ bytes: UnsafeRawBufferPointer) {
        var words = NetrcWords(bytes)
        var entry: Entry?
        while let word = words.next() {
            switch word.keyword {
            case .machine, .default:
                entry.map { add($0) }
                let machine = word.keyword == .machine ? words.next()?.text ?? "" : nil
                entry = Entry(line: word.line, machine: machine)
            case .login: entry?.user = words.next().map { ExactText($0.text) }
            case .password: entry?.password = words.next()?.secret
            case .account: _ = words.next()
            case .macdef: words.skipMacro()
            case nil: skipped.append(Skipped(line: word.line, reason: "a word that netrc does not know"))
            }
        }
        entry.map { add($0) }
    }

    private mutating func add(_ entry: Entry) {
        guard let machine = entry.machine, !machine.isEmpty else {
            return skip(entry.line, entry.machine == nil ? "default: a login for every host is not kept" : "no host")
        }
        guard let user = entry.user, !user.isEmpty else { return skip(entry.line, "no login") }
        guard let password = entry.password, !password.isEmpty else { return skip(entry.line, "no password") }
        logins.append(Login(site: machine, user: user, password: password, line: entry.line))
    }

    private mutating func skip(_ line: Int, _ reason: String) { skipped.append(Skipped(line: line, reason: reason)) }

    // MARK: git

    private mutating func readGit(_ bytes: UnsafeRawBufferPointer) {
        for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            guard !line.isEmpty, line.first != UInt8(ascii: "#") else { continue }
            let (url, userInfo) = URLText.split(Secret(copying: UnsafeRawBufferPointer(rebasing: line)))
            guard let userInfo else {
                skip(index + 1, "no user and password")
                continue
            }
            let halves = userInfo.withUnsafeBytes { text -> (user: Secret?, password: Secret?) in
                let colon = text.firstIndex(of: UInt8(ascii: ":"))
                let password = colon.flatMap { Secret(percentDecoding: text[($0 + 1)...]) }
                return (Secret(percentDecoding: text[..<(colon ?? text.endIndex)]), password)
            }
            let user = halves.user?.withUnsafeBytes { String(validating: $0, as: UTF8.self) } ?? nil
            guard let user, !user.isEmpty, let password = halves.password, !password.isEmpty else {
                skip(index + 1, "no user and password, or they are not percent-encoded as they should be")
                continue
            }
            var login = Login(site: url, user: ExactText(user), password: password, line: index + 1)
            login.path = Self.path(of: url)
            logins.append(login)
        }
    }

    /// `nil` for the whole server.
    private static func path(of url: String) -> ExactText? {
        guard let start = url.firstRange(of: "://")?.upperBound, let slash = url[start...].firstIndex(of: "/") else {
            return nil
        }
        let path = url[slash...]
        return path == "/" ? nil : ExactText(path)
    }
}

/// The words of a netrc file: separated by blanks and line ends, or in quotation marks with `\\` before what is meant as it is.
private struct NetrcWords {
    struct Word {
        let line: Int
        let secret: Secret

        enum Keyword: String, CaseIterable {
            case machine, `default`, login, password, account, macdef
        }

        /// `nil` for any other word, which may be a part of a password.
        var keyword: Keyword? {
            secret.withUnsafeBytes { bytes in Keyword.allCases.first { $0.rawValue.utf8.elementsEqual(bytes) } }
        }

        /// Of hosts and users, not of passwords.
        var text: String { secret.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
    }

    private let bytes: UnsafeRawBufferPointer
    private var position = 0
    private var line = 1
    private var isAtLineStart = true

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    mutating func next() -> Word? {
        while position < bytes.count {
            let byte = bytes[position]
            if byte == UInt8(ascii: "#") && isAtLineStart {
                while position < bytes.count, bytes[position] != UInt8(ascii: "\n") { position += 1 }
            } else if byte == UInt8(ascii: "\n") {
                (line, isAtLineStart) = (line + 1, true)
                position += 1
            } else if Self.isBlank(byte) {
                position += 1
            } else {
                isAtLineStart = false
                return Word(line: line, secret: read())
            }
        }
        return nil
    }

    /// A macro ends with an empty line.
    mutating func skipMacro() {
        var isEmptyLine = false
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            guard byte == UInt8(ascii: "\n") else {
                isEmptyLine = isEmptyLine && byte == UInt8(ascii: "\r")
                continue
            }
            line += 1
            if isEmptyLine { break }
            isEmptyLine = true
        }
        isAtLineStart = true
    }

    private mutating func read() -> Secret {
        let isQuoted = bytes[position] == UInt8(ascii: "\"")
        if isQuoted { position += 1 }
        return Secret(capacity: bytes.count - position) { block in
            var count = 0
            while position < bytes.count {
                var byte = bytes[position]
                if isQuoted ? byte == UInt8(ascii: "\"") : Self.isBlank(byte) || byte == UInt8(ascii: "\n") { break }
                if isQuoted, byte == UInt8(ascii: "\\"), position + 1 < bytes.count {
                    position += 1
                    byte = Self.escaped[bytes[position]] ?? bytes[position]
                }
                if byte == UInt8(ascii: "\n") { line += 1 }
                block[count] = byte
                count += 1
                position += 1
            }
            if isQuoted { position = min(position + 1, bytes.count) }
            return count
        }
    }

    private static let escaped: [UInt8: UInt8] = [
        UInt8(ascii: "n"): UInt8(ascii: "\n"), UInt8(ascii: "r"): UInt8(ascii: "\r"),
        UInt8(ascii: "t"): UInt8(ascii: "\t"),
    ]

    private static func isBlank(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0D].contains(byte) }
}
