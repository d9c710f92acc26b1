internal import WatchwordProtocol

extension FetchURL {
    /// Parses an absolute URL without user information.
    ///
    /// Parsing is strict where two parsers could disagree about the host, and lenient elsewhere: it percent-encodes
    /// characters that are not allowed in a path or query, resolves dot segments, and drops the fragment.
    /// - Throws: `FetchFailure` of kind `badURL`.
    public init(_ text: String) throws(FetchFailure) {
        guard text.utf8.count <= Limits.urlBytes else {  // guard: url-length
            throw .badURL("URL too long (limit \(Limits.urlBytes) bytes)")
        }
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), text[colon...].utf8.starts(with: "://".utf8)
        else {
            // The text is not quoted, because it may be a password.
            throw .badURL("a URL must start with http:// or https://")
        }
        guard let scheme = Origin.Scheme(rawValue: text[..<colon].asciiLowercased) else {
            throw .badURL("unsupported scheme \"\(String(text[..<colon]).shortened)\"; use http or https")
        }
        let rest = text[text.utf8.index(colon, offsetBy: 3)...]
        let end = rest.utf8.firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? rest.endIndex
        self.init(
            origin: try Origin(scheme: scheme, authority: rest[..<end]),
            reference: try URLComponentText.components(of: rest[end...]))
    }

    /// - Parameter reference: the part of the URL after the authority.
    init(origin: Origin, reference: (path: String, query: String?)) {
        self.init(
            origin: origin, path: ExactText(URLComponentText.removingDotSegments(reference.path)),
            query: reference.query)
    }
}

extension Origin {
    /// Parses host and port (RFC 3986 sections 3.2.2 and 3.2.3).
    init(scheme: Scheme, authority: Substring) throws(FetchFailure) {
        // Every fetch runs this code, and the bytes of a `Substring` are slow to read.
        let authority = String(authority)
        guard !authority.utf8.contains(UInt8(ascii: "@")) else {
            throw .badURL("user and password are not allowed in this URL; remove them")
        }
        let (host, port) = try Self.divide(authority)
        let lowercased = host.asciiLowercased
        let isValid =
            lowercased.utf8.first == Self.bracket ? Self.isIPv6Literal(lowercased) : Self.isRegisteredName(lowercased)
        guard isValid else {
            throw .badURL(
                "invalid host \"\(String(host).shortened)\"; use a name in ASCII (punycode), 192.0.2.1 or [2001:db8::1]"
            )
        }
        guard let port, !port.isEmpty else {
            self.init(scheme: scheme, host: ExactText(lowercased), port: scheme.defaultPort)
            return
        }
        guard port.utf8.allSatisfy(Self.isDigit), let number = Int(port),
            (1...65_535).contains(number)
        else {
            // The port is not quoted, because in a malformed URL it may be a password.
            throw .badURL("invalid port; use 1 to 65535")
        }
        self.init(scheme: scheme, host: ExactText(lowercased), port: number)
    }

    private static func divide(_ authority: String) throws(FetchFailure) -> (host: Substring, port: Substring?) {
        if authority.utf8.first == bracket {
            guard let bracket = authority.firstIndex(of: "]") else {
                throw .badURL("missing \"]\" after the IPv6 address")
            }
            let after = authority[authority.index(after: bracket)...]
            guard after.isEmpty || after.hasPrefix(":") else {
                throw .badURL("unexpected text after \"]\"; only a colon and a port may follow")
            }
            return (authority[...bracket], after.isEmpty ? nil : after.dropFirst())
        }
        guard let colon = authority.utf8.firstIndex(of: UInt8(ascii: ":")) else { return (authority[...], nil) }
        return (authority[..<colon], authority[authority.utf8.index(after: colon)...])
    }

    /// Whether `host` consists of letters, digits, `-`, `.` and `_`. A host whose last label resolvers would read as a
    /// number must be an IPv4 address in dotted decimal: otherwise `0x7f.1` and `127.1` would pass as names.
    private static func isRegisteredName(_ host: String) -> Bool {
        var name = host
        return name.withUTF8 { bytes in
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
            return isNumeric ? HostName.isIPv4(host) : true  // guard: url-hidden-address
        }
    }

    private static let dot = UInt8(ascii: ".")
    private static let bracket = UInt8(ascii: "[")

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// A zone (RFC 6874) is not allowed: it would reveal the name of a network interface to the server.
    private static func isIPv6Literal(_ host: String) -> Bool {
        host.hasSuffix("]") && host.utf8.contains(UInt8(ascii: ":")) && !host.utf8.contains(UInt8(ascii: "%"))
            && NetworkAddress(host) != nil  // guard: url-ipv6
    }
}

extension FetchFailure {
    static func badURL(_ text: String) -> FetchFailure { FetchFailure(.badURL, text) }
}
