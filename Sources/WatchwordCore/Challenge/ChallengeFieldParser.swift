internal import WatchwordProtocol

/// Reads one field: `challenge = auth-scheme [ 1*SP ( token68 / #auth-param ) ]`, in a list (RFC 9110 sections 5.6 and 11.3).
///
/// The grammar is ambiguous only until the next token has been read: followed by `=` it is a parameter, else a scheme.
struct ChallengeFieldParser {
    private let bytes: [UInt8]
    private var position = 0

    init(_ field: String) { bytes = Array(field.utf8) }

    /// `nil` when the field is malformed.
    mutating func parse() -> [SchemeChallenge]? {
        var challenges: [SchemeChallenge] = []
        skipListSeparators()
        while position < bytes.count {
            guard let challenge = parseChallenge() else { return nil }
            challenges.append(challenge)
            guard atEndOrSeparator() else { return nil }
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
        if skipBlanks() > 0 {
            token68 = parseToken68()
            if token68 != nil {
                end = position
            } else {
                guard let parsedEnd = parseParameters(into: &parameters, end: end) else { return nil }
                end = parsedEnd
            }
        }
        position = end
        skipBlanks()
        let names = parameters.map(\.name)
        return SchemeChallenge(
            scheme: scheme, parameters: parameters, token68: token68, raw: text(start..<end),
            hasDuplicateParameters: Set(names).count != names.count)
    }

    /// Reads parameters as long as there are some, and returns where the last one ended; `nil` when one is malformed.
    private mutating func parseParameters(into parameters: inout [SchemeChallenge.Parameter], end: Int) -> Int? {
        var end = end
        while let name = parseParameterName() {
            guard let value = bytes[safe: position] == UInt8(ascii: "\"") ? parseQuotedString() : parseToken() else {
                return nil
            }
            parameters.append(.init(name.asciiLowercased, value))
            end = position
            skipBlanks()
            guard bytes[safe: position] == UInt8(ascii: ",") else { break }
            skipListSeparators()
        }
        return end
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
            case UInt8(ascii: "\""):
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
