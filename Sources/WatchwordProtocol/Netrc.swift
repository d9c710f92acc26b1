/// The logins in a netrc file (netrc(5), with curl's quoted words).
public struct Netrc {
    public struct Login: Sendable, Equatable {
        /// The machine name as written in the file: a host, possibly with a port.
        public let machine: String
        public let user: ExactText
        public let password: Secret
        public let line: Int

        public init(machine: String, user: ExactText, password: Secret, line: Int = 0) {
            (self.machine, self.user, self.password, self.line) = (machine, user, password, line)
        }
    }

    /// An entry, or a word, that yields no login.
    public struct Skipped: Equatable {
        public let line: Int
        public let reason: String
    }

    /// The logins, in the order of the file.
    public private(set) var logins: [Login] = []
    public private(set) var skipped: [Skipped] = []
    private let isWanted: (String) -> Bool

    /// Parses the content of a netrc file. The caller owns `bytes` and wipes them.
    /// - Parameter isWanted: Selects the machines whose logins are returned; the passwords of others are wiped at once.
    public init(_ bytes: UnsafeRawBufferPointer, where isWanted: @escaping (String) -> Bool = { _ in true }) {
        self.isWanted = isWanted
        read(bytes)
    }

    private struct Entry {
        let line: Int
        let isDefault: Bool
        var machine: String?
        var user: ExactText?
        var password: Secret?
        /// The first fault of the entry, if any. The entry then yields no login, because the words after a fault may belong to
        /// another host.
        var fault: Skipped?

        mutating func take(_ value: NetrcWords.Word?, of word: NetrcWords.Word, _ keyword: NetrcWords.Keyword) {
            guard let value else {
                let reason = keyword == .machine ? "no host" : "missing value, or value that needs quotation marks"
                return record(Skipped(line: word.line, reason: reason))
            }
            switch keyword {
            case .machine:
                machine = value.text
                if machine == nil { record(Skipped(line: word.line, reason: "the host is not UTF-8 text")) }
            case .login where user == nil:
                user = value.text.map { ExactText($0) }
                if user == nil { record(Skipped(line: word.line, reason: "the user is not UTF-8 text")) }
            case .password where password == nil: password = value.secret
            case .login, .password: record(Skipped(line: word.line, reason: "a second login or password"))
            case .account, .default, .macdef: break
            }
        }

        mutating func record(_ fault: Skipped) { self.fault = self.fault ?? fault }
    }

    private mutating func read(_ bytes: UnsafeRawBufferPointer) {
        var words = NetrcWords(bytes)
        var entry: Entry?
        while let word = words.nextOfEntry() {
            switch word.keyword {
            case .machine?, .default?:
                entry.map { add($0) }
                entry = Entry(line: word.line, isDefault: word.keyword == .default)
                if word.keyword == .machine { entry?.take(words.nextValue(of: .machine), of: word, .machine) }
            case .macdef?: words.skipMacro()
            case let keyword?:
                let value = words.nextValue(of: keyword)
                entry?.take(value, of: word, keyword)
            case nil:
                let fault = Skipped(line: word.line, reason: "unknown word")
                if entry == nil { skipped.append(fault) }
                entry?.record(fault)
            }
        }
        entry.map { add($0) }
    }

    private mutating func add(_ entry: Entry) {
        guard !entry.isDefault else { return skip(entry.line, "default: a login for all hosts is not stored") }
        if let fault = entry.fault { return skipped.append(fault) }
        guard let machine = entry.machine, !machine.isEmpty else { return skip(entry.line, "no host") }
        guard let user = entry.user, !user.isEmpty else { return skip(entry.line, "no login") }
        guard let password = entry.password, !password.isEmpty else { return skip(entry.line, "no password") }
        guard isWanted(machine) else { return }
        logins.append(Login(machine: machine, user: user, password: password, line: entry.line))
    }

    private mutating func skip(_ line: Int, _ reason: String) { skipped.append(Skipped(line: line, reason: reason)) }
}

/// The words of a netrc file. Words are separated by blanks and line ends; a word in quotation marks stays on one line and uses
/// `\` as its escape character.
private struct NetrcWords {
    enum Keyword: String, CaseIterable {
        case machine, `default`, login, password, account, macdef
    }

    struct Word {
        enum Quotation { case none, closed, open }

        let line: Int
        let quotation: Quotation
        let secret: Secret

        /// The keyword; `nil` for any other word, which may be part of a password.
        var keyword: Keyword? {
            guard quotation == .none else { return nil }
            return secret.withUnsafeBytes { bytes in
                Keyword.allCases.first { $0.rawValue.utf8.elementsEqual(bytes) }
            }
        }

        var beginsWithHash: Bool {
            quotation == .none && secret.withUnsafeBytes { $0.first == UInt8(ascii: "#") }
        }

        /// The word as text; `nil` if it is not UTF-8. Only for hosts and users, never for passwords.
        var text: String? { secret.withUnsafeBytes { String(validating: $0, as: UTF8.self) } }
    }

    private let bytes: UnsafeRawBufferPointer
    private var position = 0
    private var line = 1
    private var isAtLineStart = true

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// Returns the next word at a place where a keyword is expected, and where a word that begins with `#` starts a comment.
    mutating func nextOfEntry() -> Word? {
        while let word = next() {
            guard word.beginsWithHash else { return word }
            skipLine()
        }
        return nil
    }

    /// Returns the value of `keyword`, or `nil` if it is missing. A keyword in the place of a value is not consumed, so that
    /// the words after it are not assigned to the previous entry. An unquoted word that begins with `#` starts a comment, unless it
    /// is a password of at least two characters.
    mutating func nextValue(of keyword: Keyword) -> Word? {
        let before = self
        guard let word = next(), word.quotation != .open else { return nil }
        if word.keyword != nil {  // guard: netrc-swallowed-keyword
            self = before
            return nil
        }
        if word.beginsWithHash, keyword != .password || word.secret.count == 1 {
            skipLine()
            return nil
        }
        return word
    }

    private mutating func next() -> Word? {
        while position < bytes.count {
            let byte = bytes[position]
            if byte == UInt8(ascii: "#") && isAtLineStart {
                skipLine()
            } else if byte == Self.lineEnd {
                (line, isAtLineStart) = (line + 1, true)
                position += 1
            } else if Self.isBlank(byte) {
                position += 1
            } else {
                isAtLineStart = false
                return read()
            }
        }
        return nil
    }

    private mutating func skipLine() {
        while position < bytes.count, bytes[position] != Self.lineEnd { position += 1 }
    }

    /// Skips a macro definition, which ends with an empty line.
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

    private mutating func read() -> Word {
        let isQuoted = bytes[position] == UInt8(ascii: "\"")
        if isQuoted { position += 1 }
        let secret = Secret(capacity: rawLength(isQuoted: isQuoted)) { block in
            var count = 0
            while position < bytes.count, !isEnd(bytes[position], isQuoted: isQuoted) {
                var byte = bytes[position]
                if isQuoted, isEscape(at: position) {
                    position += 1
                    byte = Self.escaped[bytes[position]] ?? bytes[position]
                }
                block[count] = byte
                count += 1
                position += 1
            }
            return count
        }
        guard isQuoted else { return Word(line: line, quotation: .none, secret: secret) }
        guard position < bytes.count, bytes[position] != Self.lineEnd else {
            return Word(line: line, quotation: .open, secret: secret)
        }
        position += 1
        return Word(line: line, quotation: .closed, secret: secret)
    }

    /// Returns the length of the word at `position` in the file, including escape characters.
    private func rawLength(isQuoted: Bool) -> Int {
        var end = position
        while end < bytes.count, !isEnd(bytes[end], isQuoted: isQuoted) {
            end += isQuoted && isEscape(at: end) ? 2 : 1
        }
        return end - position
    }

    private func isEnd(_ byte: UInt8, isQuoted: Bool) -> Bool {
        byte == Self.lineEnd || (isQuoted ? byte == UInt8(ascii: "\"") : Self.isBlank(byte))
    }

    private func isEscape(at index: Int) -> Bool {
        bytes[index] == UInt8(ascii: "\\") && index + 1 < bytes.count && bytes[index + 1] != Self.lineEnd
    }

    private static let lineEnd = UInt8(ascii: "\n")
    private static let escaped: [UInt8: UInt8] = [
        UInt8(ascii: "n"): UInt8(ascii: "\n"), UInt8(ascii: "r"): UInt8(ascii: "\r"),
        UInt8(ascii: "t"): UInt8(ascii: "\t"),
    ]

    private static func isBlank(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0D].contains(byte) }
}
