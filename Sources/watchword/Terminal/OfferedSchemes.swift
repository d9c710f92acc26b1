import WatchwordProtocol

/// The names of the schemes in authentication fields (RFC 9110 section 11.6.1), for display only. The broker parses the
/// complete fields and decides which scheme is used.
enum OfferedSchemes {
    private static let longestList = 8

    /// Returns each name once, in the server's order.
    static func names(in fields: [String]) -> [String] {
        var names: [String] = []
        for element in fields.flatMap(elements) {
            guard let name = name(in: element), names.count < longestList else { continue }
            if !names.contains(where: { $0.lowercased() == name.lowercased() }) { names.append(name) }
        }
        return names
    }

    /// Splits at the commas outside quoted strings.
    private static func elements(of field: String) -> [[UInt8]] {
        var (elements, isQuoted, isEscaped) = ([[UInt8]]([[]]), false, false)
        for byte in field.utf8 {
            if byte == UInt8(ascii: "\""), !isEscaped { isQuoted.toggle() }
            isEscaped = isQuoted && !isEscaped && byte == UInt8(ascii: "\\")
            if byte == UInt8(ascii: ","), !isQuoted {
                elements.append([])
            } else {
                elements[elements.count - 1].append(byte)
            }
        }
        return elements
    }

    /// Returns the token at the start of `element`, which is a scheme unless `=` follows.
    private static func name(in element: [UInt8]) -> String? {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        let text = element.drop(while: isBlank)
        let token = text.prefix { $0.isTokenCharacter }
        let rest = text.dropFirst(token.count)
        guard !token.isEmpty, rest.first.map(isBlank) ?? true, rest.first(where: { !isBlank($0) }) != UInt8(ascii: "=")
        else { return nil }
        return String(decoding: token, as: UTF8.self).shortened
    }
}
