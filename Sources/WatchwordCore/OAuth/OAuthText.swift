internal import COpenSSL
internal import JSONText
internal import WatchwordProtocol

/// The encodings that OAuth uses.
enum OAuthText {
    /// Returns 256 random bits in base64url, 43 characters: a `state`, or a code verifier (RFC 7636 section 4.1).
    static func makeRandom() -> String {
        var generator = SystemRandomNumberGenerator()
        return base64URL((0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) })
    }

    /// Returns base64url without padding (RFC 4648 section 5).
    static func base64URL(_ bytes: [UInt8]) -> String {
        var encoded = [UInt8](repeating: 0, count: Base64.encodedCount(bytes.count))
        bytes.withUnsafeBytes { source in encoded.withUnsafeMutableBytes { Base64.encode(source, into: $0) } }
        let text = encoded.prefix { $0 != UInt8(ascii: "=") }.map { byte -> UInt8 in
            switch byte {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: byte
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes base64url without padding; `nil` if it is malformed.
    static func decodeBase64URL(_ text: some Collection<UInt8>) -> [UInt8]? {
        var standard = text.map { byte -> UInt8 in
            switch byte {
            case UInt8(ascii: "-"): UInt8(ascii: "+")
            case UInt8(ascii: "_"): UInt8(ascii: "/")
            default: byte
            }
        }
        while standard.count % 4 != 0 { standard.append(UInt8(ascii: "=")) }
        return standard.withUnsafeBytes { Base64.decode($0) }
    }

    /// Returns the SHA-256 hash.
    static func sha256(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Int(SHA256_DIGEST_LENGTH)) { buffer, count in
            SHA256(bytes.baseAddress, bytes.count, buffer.baseAddress)
            count = Int(SHA256_DIGEST_LENGTH)
        }
    }

    /// Returns the code challenge of a verifier, method S256 (RFC 7636 section 4.2).
    static func codeChallenge(of verifier: String) -> String { base64URL(Array(verifier.utf8).withUnsafeBytes(sha256)) }

    /// Encodes a value of `application/x-www-form-urlencoded`, with %20 for a space, which every server decodes.
    static func formEncoded(_ bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count)
        for byte in bytes {
            if isUnreserved(byte) {
                text.append(byte)
            } else {
                let digits = Array("0123456789ABCDEF".utf8)
                text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return text
    }

    static func formEncoded(_ text: String) -> String {
        var text = text
        return text.withUTF8 { String(decoding: formEncoded(UnsafeRawBufferPointer($0)), as: UTF8.self) }
    }

    /// Encodes a part of a header section.
    static func formEncoded(header text: String) -> String {
        String(decoding: text.headerBytes.withUnsafeBytes(formEncoded), as: UTF8.self)
    }

    /// Whether a byte needs no encoding (RFC 3986 section 2.3).
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte.asciiLowercased)
            || [0x2D, 0x2E, 0x5F, 0x7E].contains(byte)
    }

    /// Returns the parameters of a query. One that occurs twice or is malformed makes it invalid (RFC 6749 section 3.1).
    /// - Parameter names: the parameters to read, if the others are to be ignored.
    static func query(_ text: String, _ names: Set<String>? = nil) -> [String: String]? {
        var fields: [String: String] = [:]
        for part in text.split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = decoded(pair[0])
            if let names, !(name.map(names.contains) ?? false) { continue }
            guard let name, let value = pair.count == 2 ? decoded(pair[1]) : "" else { return nil }
            guard fields.updateValue(value, forKey: name) == nil else { return nil }  // guard: oauth-parameter-twice
        }
        return fields
    }

    /// Decodes a name or value of a query; `nil` if it is malformed or contains control characters.
    private static func decoded(_ text: Substring) -> String? {
        var (bytes, rest): ([UInt8], Substring.UTF8View) = ([], text.utf8)
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): bytes.append(0x20)
            case UInt8(ascii: "%"):
                guard let digits = String(rest.prefix(2)), digits.count == 2, let value = UInt8(digits, radix: 16)
                else {
                    return nil
                }
                bytes.append(value)
                rest = rest.dropFirst(2)
            default: bytes.append(byte)
            }
        }
        guard !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }
}

/// Parses the documents of authorization servers and resources.
enum OAuthDocument {
    /// The size limit of a document or reply, in bytes.
    static let largestSize = 256 << 10

    static func parse(_ body: [UInt8]) -> JSON? {
        guard body.count <= largestSize else { return nil }
        do throws(JSONFailure) {
            let json = try JSON.parse(body, limits: JSONLimits(depth: 16, values: 8192))
            return json.kind == .object ? json : nil
        } catch {
            return nil
        }
    }
}

extension JSON {
    /// The strings of a list; empty if the value is anything else.
    func strings(_ name: String) -> [String] { self[name]?.elements?.compactMap(\.string) ?? [] }

    /// The bytes of a string member, as a secret.
    func secret(_ name: String) -> Secret? { self[name]?.withUTF8 { Secret(copying: $0) } }
}

extension FetchFailure {
    /// - Parameter server: the URL of the authorization server.
    static func login(at server: String, _ text: String) -> FetchFailure {
        FetchFailure(.loginFailed, "cannot log in at \(DisplayURL.text(server)): \(text)")
    }
}

extension FetchURL {
    /// Whether tokens and metadata may be exchanged with this server: by https, or on this machine (RFC 6750 section
    /// 5.3).
    var isSecureEnough: Bool { origin.scheme == .https || origin.isLoopback }  // guard: oauth-https

    /// Whether this is a server to which a document of `namer` may refer: one without https only by one without it.
    // guard: oauth-loopback-named
    func mayBeNamed(by namer: FetchURL) -> Bool {
        origin.scheme == .https || origin.isLoopback && namer.origin.scheme == .http
    }
}
