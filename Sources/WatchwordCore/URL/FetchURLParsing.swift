internal import WatchwordProtocol

extension FetchURL {
    /// Parses an absolute URL without user information.
    ///
    /// Strict where two readers could disagree on the host, and helpful elsewhere: characters that have no place in a path
    /// or query are percent-encoded, dot segments are resolved, the fragment is dropped.
    /// - Throws: `FetchFailure` of kind `badURL`.
    public init(_ text: String) throws(FetchFailure) {
        guard text.utf8.count <= Limits.urlBytes else {
            throw .badURL("The URL is longer than \(Limits.urlBytes) bytes.")
        }
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), text[colon...].utf8.starts(with: "://".utf8)
        else {
            // Not quoted: what stands there may be a password that was meant to follow "//".
            throw .badURL("The URL does not start with http:// or https://.")
        }
        guard let scheme = Origin.Scheme(rawValue: text[..<colon].asciiLowercased) else {
            throw .badURL("Only http and https are fetched, not \"\(String(text[..<colon]).shortened)\".")
        }
        let rest = text[text.utf8.index(colon, offsetBy: 3)...]
        let end = rest.utf8.firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? rest.endIndex
        self.init(
            origin: try Origin(scheme: scheme, authority: rest[..<end]),
            reference: try URLComponentText.components(of: rest[end...]))
    }

    /// `reference` is what follows the authority.
    init(origin: Origin, reference: (path: String, query: String?)) {
        self.init(
            origin: origin, path: ExactText(URLComponentText.removingDotSegments(reference.path)),
            query: reference.query)
    }
}

extension Origin {
    /// Parses host and port (RFC 3986 sections 3.2.2 and 3.2.3).
    init(scheme: Scheme, authority: Substring) throws(FetchFailure) {
        guard !authority.utf8.contains(UInt8(ascii: "@")) else {
            throw .badURL("User and password have no place here.")
        }
        let (host, port) = try Self.divide(authority)
        let lowercased = host.asciiLowercased
        let isValid =
            lowercased.utf8.first == Self.bracket ? Self.isIPv6Literal(lowercased) : Self.isRegisteredName(lowercased)
        guard isValid else {
            throw .badURL(
                "\"\(String(host).shortened)\" is not a host. Names are in ASCII (punycode), addresses as 192.0.2.1 or [2001:db8::1]."
            )
        }
        guard let port, !port.isEmpty else {
            self.init(scheme: scheme, host: ExactText(lowercased), port: scheme.defaultPort)
            return
        }
        guard port.utf8.allSatisfy(Self.isDigit), let number = Int(port),
            (1...65_535).contains(number)
        else {
            // Not quoted: what stands there may be the password of a URL that lacks its host.
            throw .badURL("What follows the last colon of the host is not a port from 1 to 65535.")
        }
        self.init(scheme: scheme, host: ExactText(lowercased), port: number)
    }

    private static func divide(_ authority: Substring) throws(FetchFailure) -> (host: Substring, port: Substring?) {
        if authority.utf8.first == bracket {
            guard let bracket = authority.firstIndex(of: "]") else {
                throw .badURL("The bracket of the address is not closed.")
            }
            let after = authority[authority.index(after: bracket)...]
            guard after.isEmpty || after.hasPrefix(":") else {
                throw .badURL("After an address in brackets comes a port.")
            }
            return (authority[...bracket], after.isEmpty ? nil : after.dropFirst())
        }
        guard let colon = authority.utf8.firstIndex(of: UInt8(ascii: ":")) else { return (authority, nil) }
        return (authority[..<colon], authority[authority.utf8.index(after: colon)...])
    }

    /// Letters, digits, `-`, `.` and `_`; and where the last label is a number, as resolvers read it, an IPv4 address in its
    /// plain form: `0x7f.1` and `127.1` are ways to hide one.
    private static func isRegisteredName(_ host: String) -> Bool {
        let bytes = host.utf8
        var previous = dot
        let allowed = bytes.allSatisfy { byte in
            defer { previous = byte }
            return (0x61...0x7A).contains(byte) || isDigit(byte) || byte == 0x2D || byte == 0x5F
                || (byte == dot && previous != dot)
        }
        guard allowed, !bytes.isEmpty, bytes.count <= 253 else { return false }
        let labels = previous == dot ? bytes.dropLast() : bytes[...]
        let last = labels[(labels.lastIndex(of: dot).map(labels.index(after:)) ?? labels.startIndex)...]
        guard let first = last.first, isDigit(first) else { return true }
        let isNumeric = last.allSatisfy(isDigit) || last.starts(with: "0x".utf8)
        return isNumeric ? HostName.isIPv4(host) : true
    }

    private static let dot = UInt8(ascii: ".")
    private static let bracket = UInt8(ascii: "[")

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// Without a zone (RFC 6874): it would name an interface of this machine to the server.
    private static func isIPv6Literal(_ host: String) -> Bool {
        host.hasSuffix("]") && host.utf8.contains(UInt8(ascii: ":")) && !host.utf8.contains(UInt8(ascii: "%"))
            && NetworkAddress(host) != nil
    }
}

extension FetchFailure {
    static func badURL(_ text: String) -> FetchFailure { FetchFailure(.badURL, text) }
}
