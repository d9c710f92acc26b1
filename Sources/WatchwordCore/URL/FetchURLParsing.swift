internal import WatchwordProtocol

extension FetchURL {
    /// Parses an absolute URL without user information.
    ///
    /// Parsing is strict where two parsers could disagree about the host, and lenient elsewhere: it percent-encodes
    /// characters that are not allowed in a path or query, resolves dot segments, and drops the fragment.
    /// - Parameter keepsTarget: whether path and query are sent as they are in `text`, which then has no fragment.
    /// - Throws: `FetchFailure` of kind `badURL`.
    public init(_ text: String, keepsTarget: Bool = false) throws(FetchFailure) {
        guard text.utf8.count <= Limits.urlBytes else {
            throw .badURL("URL too long (limit \(Limits.urlBytes) bytes)")
        }
        let (origin, reference, target) = try text.readingUTF8 { bytes throws(FetchFailure) in
            let (scheme, start) = try Self.scheme(of: bytes)
            let rest = bytes[start...]
            let end = rest.firstIndex { $0 == 0x2F || $0 == 0x3F || $0 == 0x23 } ?? rest.endIndex
            return (
                try Origin(scheme: scheme, authority: UnsafeBufferPointer(rebasing: rest[..<end])),
                try URLComponentText.components(of: UnsafeBufferPointer(rebasing: rest[end...])),
                keepsTarget ? String(decoding: rest[end...], as: UTF8.self) : nil
            )
        }
        self.init(origin: origin, reference: reference, received: target)
    }

    /// Returns the scheme of an absolute URL, and where its authority begins.
    private static func scheme(of bytes: UnsafeBufferPointer<UInt8>) throws(FetchFailure) -> (Origin.Scheme, Int) {
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes.count > colon + 2,
            bytes[colon + 1] == 0x2F, bytes[colon + 2] == 0x2F
        else {
            // The text is not quoted, because it may be a password.
            throw .badURL("a URL must start with http:// or https://")
        }
        let name = String(decoding: bytes[..<colon], as: UTF8.self)
        guard let scheme = Origin.Scheme(rawValue: name.asciiLowercased) else {
            throw .badURL("unsupported scheme \"\(name.shortened)\"; use http or https")
        }
        return (scheme, colon + 3)
    }

    /// - Parameter reference: the part of the URL after the authority.
    init(origin: Origin, reference: (path: String, query: String?), received: String? = nil) {
        self.init(
            origin: origin, path: ExactText(URLComponentText.removingDotSegments(reference.path)),
            query: reference.query, received: received)
    }
}

extension Origin {
    /// Parses host and port (RFC 3986 sections 3.2.2 and 3.2.3).
    init(scheme: Scheme, authority: String) throws(FetchFailure) {
        self = try authority.readingUTF8 { bytes throws(FetchFailure) in try Origin(scheme: scheme, authority: bytes) }
    }

    init(scheme: Scheme, authority: UnsafeBufferPointer<UInt8>) throws(FetchFailure) {
        guard !authority.contains(UInt8(ascii: "@")) else {
            throw .badURL("user and password are not allowed in this URL; remove them")
        }
        let end = try Self.endOfHost(authority)
        let host = String(decoding: authority[..<end], as: UTF8.self)
        let lowercased = host.asciiLowercased
        let isValid =
            authority.first == Self.bracket ? Self.isIPv6Literal(lowercased) : Self.isRegisteredName(lowercased)
        guard isValid else {
            throw .badURL(
                "invalid host \"\(host.shortened)\"; use a name in ASCII (punycode), 192.0.2.1 or [2001:db8::1]")
        }
        let port = authority[end...].dropFirst()
        guard !port.isEmpty else {
            self.init(scheme: scheme, host: ExactText(lowercased), port: scheme.defaultPort)
            return
        }
        guard port.allSatisfy(Self.isDigit), let number = Int(String(decoding: port, as: UTF8.self)),
            (1...65_535).contains(number)
        else {
            // The port is not quoted, because in a malformed URL it may be a password.
            throw .badURL("invalid port; use 1 to 65535")
        }
        self.init(scheme: scheme, host: ExactText(lowercased), port: number)
    }

    /// Returns where the host ends: at a colon, or at the end.
    private static func endOfHost(_ authority: UnsafeBufferPointer<UInt8>) throws(FetchFailure) -> Int {
        guard authority.first == bracket else { return authority.firstIndex(of: colon) ?? authority.count }
        guard let closing = authority.firstIndex(of: UInt8(ascii: "]")) else {
            throw .badURL("missing \"]\" after the IPv6 address")
        }
        guard closing + 1 == authority.count || authority[closing + 1] == colon else {
            throw .badURL("unexpected text after \"]\"; only a colon and a port may follow")
        }
        return closing + 1
    }

    /// Whether `host` consists of letters, digits, `-`, `.` and `_`. A host whose last label resolvers would read as a
    /// number must be an IPv4 address in dotted decimal: otherwise `0x7f.1` and `127.1` would pass as names.
    private static func isRegisteredName(_ host: String) -> Bool {
        host.withBytes { bytes in
            var previous = dot
            for byte in bytes {
                let isAllowed =
                    (0x61...0x7A).contains(byte) || isDigit(byte) || byte == 0x2D || byte == 0x5F
                    || (byte == dot && previous != dot)
                guard isAllowed else { return false }
                previous = byte
            }
            guard !bytes.isEmpty, bytes.count <= 253 else { return false }
            let labels = previous == dot ? bytes.dropLast() : bytes[...]
            let last = labels[(labels.lastIndex(of: dot).map(labels.index(after:)) ?? labels.startIndex)...]
            guard let first = last.first, isDigit(first) else { return true }
            let isNumeric = last.allSatisfy(isDigit) || last.starts(with: [0x30, 0x78])
            return isNumeric ? HostName.isIPv4(host) : true  // guard: url-hidden-address
        }
    }

    private static let dot = UInt8(ascii: ".")
    private static let bracket = UInt8(ascii: "[")
    private static let colon = UInt8(ascii: ":")

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// A zone (RFC 6874) is not allowed: it would reveal the name of a network interface to the server.
    private static func isIPv6Literal(_ host: String) -> Bool {
        host.hasSuffix("]") && host.utf8.contains(UInt8(ascii: ":")) && !host.utf8.contains(UInt8(ascii: "%"))
            && NetworkAddress(host) != nil
    }
}

extension String {
    /// Passes the bytes to a function with a typed error.
    func readingUTF8<Value, Failure>(
        _ read: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try withBytes { bytes in Result { () throws(Failure) in try read(bytes) } }.get()
    }
}

extension FetchFailure {
    static func badURL(_ text: String) -> FetchFailure { FetchFailure(.badURL, text) }
}

extension FetchURL {
    /// Resolves the reference of a `Location` field against this URL (RFC 3986 section 5.2.2).
    /// - Throws: `FetchFailure` of kind `badRedirect`.
    public func resolving(_ reference: String) throws(FetchFailure) -> FetchURL {
        do {
            return try resolved(reference.percentEncodingMarks)
        } catch {
            throw FetchFailure(.badRedirect, "invalid redirect from \(origin.text): \(error.text)")
        }
    }

    private func resolved(_ reference: String) throws(FetchFailure) -> FetchURL {
        if Self.hasScheme(reference) { return try FetchURL(reference) }
        if reference.hasPrefix("//") { return try FetchURL("\(origin.scheme.rawValue):\(reference)") }
        let parts = try URLComponentText.components(of: reference)
        if parts.path.isEmpty { return FetchURL(origin: origin, path: path, query: parts.query ?? query) }
        let merged = parts.path.hasPrefix("/") ? parts.path : "\(URLComponentText.directory(of: path))\(parts.path)"
        return FetchURL(origin: origin, reference: (merged, parts.query))
    }

    /// Whether `reference` starts with a scheme and its colon (RFC 3986 section 3.1).
    private static func hasScheme(_ reference: String) -> Bool {
        guard let end = reference.firstIndex(where: { ":/?#".contains($0) }), reference[end] == ":" else {
            return false
        }
        let scheme = reference[..<end].utf8
        guard let first = scheme.first, (0x61...0x7A).contains(first.asciiLowercased) else { return false }
        return scheme.allSatisfy { byte in
            (0x61...0x7A).contains(byte.asciiLowercased) || (0x30...0x39).contains(byte)
                || [0x2B, 0x2D, 0x2E].contains(byte)
        }
    }
}
