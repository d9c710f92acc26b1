/// The logins in a netrc file (netrc(5), with curl's quoted words).
public struct Netrc {
    public struct Login: Sendable, Equatable {
        /// As it stands in the file: a host, possibly with a port.
        public let machine: String
        public let user: ExactText
        public let password: Secret
        public let line: Int

        public init(machine: String, user: ExactText, password: Secret, line: Int = 0) {
            (self.machine, self.user, self.password, self.line) = (machine, user, password, line)
        }
    }

    /// An entry, or a word, that gives no login.
    public struct Skipped: Equatable {
        public let line: Int
        public let reason: String
    }

    /// In the order of the file.
    public private(set) var logins: [Login] = []
    public private(set) var skipped: [Skipped] = []
    private let isWanted: (String) -> Bool

    /// Reads the file's content. The caller keeps, and wipes, `bytes`.
    /// - Parameter isWanted: the machines whose logins are kept; the passwords of others are wiped at once.
    public init(_ bytes: UnsafeRawBufferPointer, where isWanted: @escaping (String) -> Bool = { _ in true }) {
        self.isWanted = isWanted
        read(bytes)
    }

    private struct Entry {
        let line: Int
        /// `nil` for `default`.
        let machine: String?
        var user: ExactText?
        var password: Secret?
    }

    private mutating func read(_ bytes: UnsafeRawBufferPointer) {
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
        guard isWanted(machine) else { return }
        logins.append(Login(machine: machine, user: user, password: password, line: entry.line))
    }

    private mutating func skip(_ line: Int, _ reason: String) { skipped.append(Skipped(line: line, reason: reason)) }
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
        return Secret(capacity: rawLength(isQuoted: isQuoted)) { block in
            var count = 0
            while position < bytes.count {
                var byte = bytes[position]
                if isEnd(byte, isQuoted: isQuoted) { break }
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

    /// The length of the word at `position` as it stands in the file, escapes included.
    private func rawLength(isQuoted: Bool) -> Int {
        var end = position
        while end < bytes.count, !isEnd(bytes[end], isQuoted: isQuoted) {
            end += isQuoted && bytes[end] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(end, bytes.count) - position
    }

    private func isEnd(_ byte: UInt8, isQuoted: Bool) -> Bool {
        isQuoted ? byte == UInt8(ascii: "\"") : Self.isBlank(byte) || byte == UInt8(ascii: "\n")
    }

    private static let escaped: [UInt8: UInt8] = [
        UInt8(ascii: "n"): UInt8(ascii: "\n"), UInt8(ascii: "r"): UInt8(ascii: "\r"),
        UInt8(ascii: "t"): UInt8(ascii: "\t"),
    ]

    private static func isBlank(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0D].contains(byte) }
}
