public import WatchwordProtocol

/// The head of a request that a program sent to a front (RFC 9112 section 3). It is well-formed, and its framing is
/// unambiguous.
public struct FrontRequest: Sendable, Equatable {
    /// The target of a request (RFC 9112 section 3.2).
    public enum Target: Sendable, Equatable {
        /// An `http` URL, as programs send it to a proxy.
        indirect case absolute(FetchURL)
        /// The end of a tunnel that CONNECT opens. An IPv6 address has brackets.
        case authority(host: ExactText, port: Int)
        /// A path with its query, as programs send it to a server, or `*` for the server itself, with OPTIONS. Dot segments are
        /// not resolved.
        case origin(String)

        /// Whether it has a form that programs send to proxies.
        var isForProxy: Bool { if case .origin = self { false } else { true } }
    }

    /// The framing of the body (RFC 9112 section 6.3).
    public enum Body: Sendable, Equatable {
        case none
        /// The length in bytes, at least 1.
        case sized(Int)
        case chunked
    }

    public var method: String
    public var target: Target
    /// The minor version of HTTP/1: 0 or 1.
    public var minorVersion: Int
    /// The header fields as received, without `Authorization` and `Proxy-Authorization`.
    public var headers: [HeaderField]
    /// The value of `Authorization`, for the origin.
    public var authorization: Secret?
    /// The value of `Proxy-Authorization`, for the front. It is never forwarded.
    public var proxyAuthorization: Secret?
    public var body: Body
    /// Whether the connection may be used for another request (RFC 9112 section 9.3).
    public var keepsAlive: Bool
    /// Whether the program waits for `100 Continue` before it sends the body (RFC 9110 section 10.1.1).
    public var expectsContinue: Bool
    /// The protocol to which the program wants to switch (RFC 9110 section 7.8).
    public var upgrade: String?
    /// The value of `Host`, a valid host with an optional port, or empty.
    public var host: String?

    public init(
        method: String, target: Target, minorVersion: Int = 1, headers: [HeaderField] = [],
        authorization: Secret? = nil, proxyAuthorization: Secret? = nil, body: Body = .none, keepsAlive: Bool = true,
        expectsContinue: Bool = false,
        upgrade: String? = nil, host: String? = nil
    ) {
        self.method = method
        self.target = target
        self.minorVersion = minorVersion
        self.headers = headers
        self.authorization = authorization
        self.proxyAuthorization = proxyAuthorization
        self.body = body
        self.keepsAlive = keepsAlive
        self.expectsContinue = expectsContinue
        self.upgrade = upgrade
        self.host = host
    }

    /// The host and port of the server that the request is for, in lower case: those of its URL, else the value of `Host` (RFC 9112
    /// section 3.2.2).
    public var authority: ExactText? {
        switch target {
        case .absolute(let url): ExactText(url.origin.authority)
        case .authority: nil
        case .origin: host.map { ExactText($0).asciiLowercased }
        }
    }

    /// Whether `authorization` may authenticate the connection to the origin instead of the request, as NTLM does.
    public var authorizesConnection: Bool {
        guard let authorization else { return false }
        let scheme = authorization.withUnsafeBytes { bytes in
            bytes.prefix { $0 != 0x20 }.map(\.asciiLowercased)
        }
        return !["basic", "digest", "bearer"].contains { Array($0.utf8) == scheme }
    }

    /// Whether the program accepts trailers (RFC 9110 section 6.5.1).
    public var acceptsTrailers: Bool { minorVersion == 1 && headers.hasElement("trailers", of: "TE") }

    /// Whether a front passes on the bytes of a protocol that is named in `Upgrade`.
    static func isPassedOn(protocol name: String) -> Bool { name.equalsIgnoringASCIICase("websocket") }

    /// Whether a browser shows the response as a page.
    public var isNavigation: Bool {
        ["GET", "HEAD"].contains(method)
            && headers.values(of: "Sec-Fetch-Mode").contains { $0.equalsIgnoringASCIICase("navigate") }
    }

    /// Whether the request opens a tunnel (RFC 9110 section 9.3.6).
    public var isConnect: Bool { method == "CONNECT" }
}

/// A header section, received or to be sent.
protocol HeaderSection {
    func values(of name: String) -> [String]
}

extension HeaderBlock: HeaderSection {}

extension [HeaderField]: HeaderSection {}

extension HeaderSection {
    /// Returns the elements of all fields named `name`, which is a list of tokens (RFC 9110 section 5.6.1).
    func elements(of name: String) -> [String] {
        values(of: name).flatMap { value -> [String] in
            // Most fields have one element.
            if !value.isEmpty, !value.utf8.contains(where: { $0 == UInt8(ascii: ",") || Self.isBlank($0) }) {
                return [value]
            }
            // Not by characters, which takes much longer than comparing bytes.
            return value.utf8.split(separator: UInt8(ascii: ",")).compactMap { part in
                var element = part.drop(while: Self.isBlank)
                while let last = element.last, Self.isBlank(last) { element.removeLast() }
                return element.isEmpty ? nil : String(Substring(element))
            }
        }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Whether the list of tokens `name` contains `token`, without regard to case.
    func hasElement(_ token: String, of name: String) -> Bool {
        elements(of: name).contains { $0.equalsIgnoringASCIICase(token) }
    }
}

/// The body of a request to a front.
public enum FrontBody: Sendable, Equatable {
    case none
    case bytes([UInt8])
    /// The body is received through a socket.
    case stream(size: Int?)
}

/// The limits of the requests that a front reads from one connection.
public struct FrontLimits: Sendable, Equatable {
    /// Size of the request line and the header fields of a request, and separately of its trailers, in bytes.
    public var headBytes: Int
    /// Header fields of one request, and separately its trailers.
    public var fields: Int
    /// Empty lines that are skipped before a request line (RFC 9112 section 2.2).
    public var emptyLines: Int
    /// Total size of the chunk extensions of one body, in bytes (RFC 9112 section 7.1.1).
    public var chunkExtensionBytes: Int
    /// Size of the largest part of a body that is returned at once, in bytes.
    public var partBytes: Int

    public init(
        headBytes: Int = 64 << 10, fields: Int = 128, emptyLines: Int = 8, chunkExtensionBytes: Int = 4096,
        partBytes: Int = 64 << 10
    ) {
        self.headBytes = headBytes
        self.fields = fields
        self.emptyLines = emptyLines
        self.chunkExtensionBytes = chunkExtensionBytes
        self.partBytes = partBytes
    }
}
