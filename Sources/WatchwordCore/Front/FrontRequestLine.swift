internal import WatchwordProtocol

/// The first line of a request, without its line end (RFC 9112 section 3).
struct FrontRequestLine {
    let method: String
    let target: FrontRequest.Target
    let minorVersion: Int

    init(_ line: UnsafeRawBufferPointer) throws(FrontRefusal) {
        guard let space = line.firstIndex(of: 0x20), let other = line[(space + 1)...].firstIndex(of: 0x20),
            !line[(other + 1)...].contains(0x20), space > 0, line[..<space].allSatisfy(\.isTokenCharacter)
        else { throw .requestLine }
        guard space <= HeaderPolicy.methodBytes else { throw .method }
        minorVersion = try Self.minorVersion(line[(other + 1)...])
        method = String(decoding: line[..<space], as: UTF8.self)
        target = try Self.target(UnsafeRawBufferPointer(rebasing: line[(space + 1)..<other]), method: method)
    }

    /// Whether a request can begin with `byte`. A TLS handshake, for example, does not.
    static func canBegin(with byte: UInt8) -> Bool { byte.isTokenCharacter || byte == 0x0D || byte == 0x0A }

    /// Why a line is refused of which only the beginning was received.
    static func refusal(ofLong line: UnsafeRawBufferPointer) -> FrontRefusal {
        line.prefix(HeaderPolicy.methodBytes + 1).contains(0x20) ? .targetSize : .method
    }

    /// A later version than 1.1 is read like 1.1 (RFC 9110 section 2.5).
    private static func minorVersion(_ bytes: Slice<UnsafeRawBufferPointer>) throws(FrontRefusal) -> Int {
        guard bytes.starts(with: "HTTP/".utf8) else { throw .requestLine }
        guard bytes.count == 8, bytes.starts(with: "HTTP/1.".utf8), let digit = bytes.last,
            (0x30...0x39).contains(digit)
        else { throw .version }
        return digit == 0x30 ? 0 : 1
    }

    private static func target(
        _ bytes: UnsafeRawBufferPointer, method: String
    ) throws(FrontRefusal) -> FrontRequest.Target {
        guard bytes.count <= Limits.urlBytes else { throw .targetSize }
        guard let first = bytes.first, bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "#") }) else {
            throw .target
        }
        let isConnect = method == "CONNECT"
        let isPath = first == UInt8(ascii: "/")
        // The bytes are not converted to a `String` before this check, because they may contain a password.
        guard isPath || !authority(of: bytes).contains(UInt8(ascii: "@")) else { throw .userInformation }
        // A fast path, because `String(validating:)` is generic code.
        let isASCII = bytes.allSatisfy { $0 < 0x80 }
        guard let text = isASCII ? String(decoding: bytes, as: UTF8.self) : String(validating: bytes, as: UTF8.self)
        else { throw .target }
        if isConnect { return try tunnel(text) }
        if isPath { return .origin(text) }
        let isOptions = method == "OPTIONS"
        if text == "*" {
            guard isOptions else { throw .target }
            return .origin(text)
        }
        let url = try url(text)
        // RFC 9112 section 3.2.4.
        let namesServer = isOptions && text.utf8.dropFirst("http://".count).allSatisfy { ![0x2F, 0x3F].contains($0) }
        return .absolute(namesServer ? FetchURL(server: url.origin) : url)
    }

    /// The part of a target that contains host and port, or all of it if it has no scheme.
    private static func authority(of bytes: UnsafeRawBufferPointer) -> Slice<UnsafeRawBufferPointer> {
        let slash = UInt8(ascii: "/")
        guard let start = bytes.indices.dropLast(2).first(where: { bytes[$0...].starts(with: "://".utf8) }) else {
            return bytes[...]
        }
        return bytes[(start + 3)...].prefix { $0 != slash && $0 != UInt8(ascii: "?") }
    }

    private static func url(_ text: String) throws(FrontRefusal) -> FetchURL {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")), text[colon...].utf8.starts(with: "://".utf8)
        else { throw .target }
        guard text[..<colon].equalsIgnoringASCIICase("http") else { throw .scheme }
        do {
            return try FetchURL(text, keepsTarget: true)
        } catch {
            throw FrontRefusal(400, "target", error.text)
        }
    }

    /// Parses the authority form: host and port without user information; the port is required (RFC 9112 section 3.2.3).
    private static func tunnel(_ text: String) throws(FrontRefusal) -> FrontRequest.Target {
        guard let colon = text.utf8.lastIndex(of: UInt8(ascii: ":")) else { throw .target }
        let port = text.utf8[text.utf8.index(after: colon)...]
        guard !port.isEmpty, port.allSatisfy({ (0x30...0x39).contains($0) }) else { throw .target }
        do {
            let origin = try Origin(scheme: .https, authority: text)
            return .authority(host: origin.host, port: origin.port)
        } catch {
            throw .target
        }
    }
}
