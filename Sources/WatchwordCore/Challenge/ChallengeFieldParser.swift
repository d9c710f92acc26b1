internal import WatchwordProtocol

/// Reads one field: `challenge = auth-scheme [ 1*SP ( token68 / #auth-param ) ]`, in a list (RFC 9110 sections 5.6 and 11.3).
///
/// The grammar is ambiguous only until the next token has been read: followed by `=` it is a parameter, else a scheme. A
/// challenge that is not made like this is left out, and the next one is looked for behind it: what stands in quotation marks
/// is never taken for one, and behind a quotation mark that is not closed nothing is read.
struct ChallengeFieldParser {
    private let bytes: [UInt8]
    private var position = 0
    /// Of the challenge that is being read.
    private var hasUnquotedRealm = false
    /// The schemes of those that were left out; empty where one has no name.
    private(set) var malformed: [String] = []
    private static let quote = UInt8(ascii: "\"")

    init(_ field: String) { bytes = Array(field.utf8) }

    mutating func parse() -> [SchemeChallenge] {
        var challenges: [SchemeChallenge] = []
        skipListSeparators()
        while position < bytes.count {
            let start = position
            if let challenge = parseChallenge(), atEndOrChallenge() {
                challenges.append(challenge)
            } else {
                position = start
                malformed.append(parseToken() ?? "")
                position = start
                skipToNextChallenge()
            }
            skipListSeparators()
        }
        return challenges
    }

    /// Reads a field that is `#auth-param` and nothing else (RFC 7615 section 3). `nil` when it is malformed.
    mutating func parseParameterList() -> [SchemeChallenge.Parameter]? {
        var parameters: [SchemeChallenge.Parameter] = []
        skipListSeparators()
        guard parseParameters(into: &parameters, end: position) != nil, position >= bytes.count else { return nil }
        return parameters
    }

    private mutating func parseChallenge() -> SchemeChallenge? {
        let start = position
        guard let scheme = parseToken() else { return nil }
        var end = position
        var parameters: [SchemeChallenge.Parameter] = []
        var token68: String?
        hasUnquotedRealm = false
        if skipBlanks() > 0 { token68 = parseToken68() }
        if token68 != nil {
            end = position
        } else {
            // The list of parameters may begin with empty elements (RFC 9110 section 5.6.1.2).
            skipListSeparators()
            guard let parsedEnd = parseParameters(into: &parameters, end: end) else { return nil }
            end = parsedEnd
        }
        position = end
        skipBlanks()
        let names = parameters.map(\.name)
        return SchemeChallenge(
            scheme: scheme, parameters: parameters, token68: token68, raw: text(start..<end),
            hasDuplicateParameters: Set(names).count != names.count, hasUnquotedRealm: hasUnquotedRealm)
    }

    /// Reads parameters as long as there are some, and returns where the last one ended; `nil` when one is malformed.
    private mutating func parseParameters(into parameters: inout [SchemeChallenge.Parameter], end: Int) -> Int? {
        var end = end
        while let name = parseParameterName()?.asciiLowercased {
            guard let value = bytes[safe: position] == Self.quote ? parseQuotedString() : parseBareValue(of: name)
            else {
                return nil
            }
            parameters.append(.init(name, value))
            end = position
            skipBlanks()
            guard bytes[safe: position] == UInt8(ascii: ",") else { break }
            skipListSeparators()
        }
        return end
    }

    /// A token; for a realm, which is to stand in quotation marks and does not always, also what is none: up to the next
    /// comma, or in apostrophes up to the second one.
    private mutating func parseBareValue(of name: String) -> String? {
        guard name == "realm" else { return parseToken() }
        hasUnquotedRealm = true
        let start = position
        let mark = UInt8(ascii: "'")
        if bytes[safe: start] == mark, let second = bytes[(start + 1)...].firstIndex(of: mark) {
            position = second + 1
            skipBlanks()
            if atEndOrSeparator() {
                position = second + 1
                return text(start..<position)
            }
        }
        position = bytes[start...].firstIndex(of: UInt8(ascii: ",")) ?? bytes.count
        while position > start, bytes[position - 1] == 0x20 || bytes[position - 1] == 0x09 { position -= 1 }
        // With these the comma between two parameters may be what is missing.
        let isPlain = !bytes[start..<position].contains { $0 == Self.quote || $0 == UInt8(ascii: "=") }
        return isPlain ? text(start..<position) : nil
    }

    /// Whether nothing more belongs to the challenge that was read: the field ends, or a scheme follows.
    private func atEndOrChallenge() -> Bool {
        guard position < bytes.count else { return true }
        guard bytes[position] == UInt8(ascii: ",") else { return false }
        var rest = self
        rest.skipListSeparators()
        return rest.position >= bytes.count || rest.isAtScheme
    }

    /// Whether a token follows that is no parameter's name.
    private var isAtScheme: Bool {
        var rest = self
        guard rest.parseToken() != nil else { return false }
        rest.skipBlanks()
        return rest.bytes[safe: rest.position] != UInt8(ascii: "=")
    }

    /// Behind a malformed challenge: to the comma before the next scheme, else to the end.
    private mutating func skipToNextChallenge() {
        while let byte = bytes[safe: position] {
            if byte == Self.quote {
                guard parseQuotedString() != nil else {
                    position = bytes.count
                    return
                }
            } else if byte == UInt8(ascii: ",") {
                skipListSeparators()
                if isAtScheme { return }
            } else {
                position += 1
            }
        }
    }

    /// A token followed by `=`, which is consumed with the white space around it; else nothing is consumed.
    private mutating func parseParameterName() -> String? {
        let start = position
        if let name = parseToken() {
            skipBlanks()
            if bytes[safe: position] == UInt8(ascii: "=") {
                position += 1
                skipBlanks()
                return name
            }
        }
        position = start
        return nil
    }

    private mutating func parseToken() -> String? {
        let start = position
        while let byte = bytes[safe: position], byte.isTokenCharacter { position += 1 }
        return position > start ? text(start..<position) : nil
    }

    /// `1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="` up to the end of the challenge; else nothing is
    /// consumed.
    private mutating func parseToken68() -> String? {
        let start = position
        while let byte = bytes[safe: position], byte.isToken68Character { position += 1 }
        let bodyEnd = position
        while bytes[safe: position] == UInt8(ascii: "=") { position += 1 }
        let end = position
        skipBlanks()
        if bodyEnd > start, atEndOrSeparator() {
            position = end
            return text(start..<end)
        }
        position = start
        return nil
    }

    /// RFC 9110 section 5.6.4: `\x` stands for `x`. `nil` when the closing quotation mark is missing.
    private mutating func parseQuotedString() -> String? {
        position += 1
        var content: [UInt8] = []
        while let byte = bytes[safe: position] {
            position += 1
            switch byte {
            case Self.quote:
                return String(decoding: content, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = bytes[safe: position] else { return nil }
                content.append(escaped)
                position += 1
            default:
                content.append(byte)
            }
        }
        return nil
    }

    private func atEndOrSeparator() -> Bool { position >= bytes.count || bytes[position] == UInt8(ascii: ",") }

    @discardableResult
    private mutating func skipBlanks() -> Int {
        let start = position
        while bytes[safe: position] == 0x20 || bytes[safe: position] == 0x09 { position += 1 }
        return position - start
    }

    private mutating func skipListSeparators() {
        while let byte = bytes[safe: position], byte == UInt8(ascii: ",") || byte == 0x20 || byte == 0x09 {
            position += 1
        }
    }

    private func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
}

extension [UInt8] {
    fileprivate subscript(safe index: Int) -> UInt8? { index < count ? self[index] : nil }
}
