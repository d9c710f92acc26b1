internal import WatchwordProtocol

/// Parses one field: a list of `challenge = auth-scheme [ 1*SP ( token68 / #auth-param ) ]` (RFC 9110 sections 5.6.1
/// and 11.3).
///
/// Commas separate both parameters and challenges: a token followed by `=` is the name of a parameter, any other token
/// is a scheme. A malformed challenge is skipped up to the next one. Quoted text is never taken for a challenge, and
/// everything after an unclosed quotation mark is ignored.
struct ChallengeFieldParser {
    private let bytes: [UInt8]
    private var position = 0
    /// Whether the current challenge has an unquoted realm.
    private var hasUnquotedRealm = false
    /// The schemes of the skipped challenges; empty where the scheme is malformed.
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

    /// Parses a field that consists of `#auth-param` (RFC 9110 section 11.6.3). Returns `nil` if it is malformed.
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
        let hasBlank = skipBlanks() > 0
        if hasBlank { token68 = parseToken68() }
        if token68 != nil {
            end = position
        } else if hasBlank {
            // The parameter list may begin with empty elements (RFC 9110 section 5.6.1.2).
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

    /// Parses all parameters that follow and returns where the last one ended; `nil` if one is malformed.
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

    /// Parses an unquoted value, which must be a token. Some servers do not quote the realm, as they should: an
    /// unquoted realm may be any text up to the next comma, or between two apostrophes.
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
        // A quotation mark or `=` suggests that the comma before the next parameter is missing.
        let isPlain = !bytes[start..<position].contains { $0 == Self.quote || $0 == UInt8(ascii: "=") }
        return isPlain ? text(start..<position) : nil
    }

    /// Whether the challenge ends here: the field ends, or a comma and a scheme follow.
    private func atEndOrChallenge() -> Bool {
        guard position < bytes.count else { return true }
        guard bytes[position] == UInt8(ascii: ",") else { return false }  // guard: challenge-malformed
        var rest = self
        rest.skipListSeparators()
        return rest.position >= bytes.count || rest.isAtScheme
    }

    /// Whether a token follows that is not the name of a parameter.
    private var isAtScheme: Bool {
        var rest = self
        guard rest.parseToken() != nil else { return false }
        rest.skipBlanks()
        return rest.bytes[safe: rest.position] != UInt8(ascii: "=")
    }

    /// Skips a malformed challenge, up to the next scheme after a comma, or else to the end of the field.
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

    /// Consumes a token and the `=` after it, with the white space around the `=`; otherwise consumes nothing and
    /// returns `nil`.
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

    /// Consumes `1*( ALPHA / DIGIT / "-" / "." / "_" / "~" / "+" / "/" ) *"="` if a comma or the end of the field
    /// follows; otherwise consumes nothing and returns `nil`.
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

    /// Parses a quoted string (RFC 9110 section 5.6.4). Returns `nil` if the closing quotation mark is missing.
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
