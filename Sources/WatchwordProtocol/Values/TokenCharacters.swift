/// Character classes of the HTTP grammars. All header fields run through them, so they do not search a list.
extension UInt8 {
    /// Whether the byte is a `tchar` (RFC 9110 section 5.6.2).
    package var isTokenCharacter: Bool {
        switch self {
        // ! # $ % & ' * + - . ^ _ ` | ~
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
        default: isAlphanumeric
        }
    }

    /// Whether the byte may occur in a `token68` (RFC 9110 section 11.2) or a Bearer token (RFC 6750 section 2.1). The
    /// `=` at the end is excluded.
    package var isToken68Character: Bool {
        switch self {
        // - . _ ~ + /
        case 0x2D, 0x2E, 0x5F, 0x7E, 0x2B, 0x2F: true
        default: isAlphanumeric
        }
    }

    /// Whether the byte may occur in a field value (RFC 9110 section 5.5): it is not a control character, or the tabulator.
    package var isFieldCharacter: Bool { self >= 0x20 && self != 0x7F || self == 0x09 }

    private var isAlphanumeric: Bool { (0x30...0x39).contains(self) || (0x61...0x7A).contains(self | 0x20) }
}

extension String {
    /// Whether the text is a `token` (RFC 9110 section 5.6.2).
    package var isToken: Bool {
        withBytes { !$0.isEmpty && $0.allSatisfy { $0.isTokenCharacter } }
    }

    /// Whether the text contains no line end or other control character, except for tabulators.
    package var isFieldText: Bool {
        withBytes { $0.allSatisfy { $0.isFieldCharacter } }
    }
}
