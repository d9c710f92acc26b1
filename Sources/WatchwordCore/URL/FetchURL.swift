public import WatchwordProtocol

/// An absolute `http` or `https` URL in canonical form, without user information and fragment.
///
/// A URL is parsed once. Requests, protection spaces and error messages all use this value, so that no two parsers can
/// disagree about where a credential goes.
public struct FetchURL: Sendable, Hashable {
    public let origin: Origin
    /// The path, which starts with `/`; dot segments are resolved (RFC 3986 section 5.2.4).
    public let path: ExactText
    /// The part after `?`; `nil` if there is no `?`.
    public let query: String?
    /// The whole URL, without the default port of its scheme.
    public let text: String
    /// The request target of a program, which an intermediary passes on as it is (RFC 9110 section 7.7): a login of the program
    /// may depend on it. `*` is the server itself. `nil` if it is canonical. Everything is decided by `path` and `query`.
    private let received: String?
    /// Whether `received` has dot segments, so that a server may find another path than `path`.
    public let isAmbiguous: Bool

    /// - Parameter received: path and query of a program's request, if they are to be sent as they are.
    init(origin: Origin, path: ExactText, query: String?, received: String? = nil) {
        self.origin = origin
        self.path = path
        self.query = query
        text = origin.text(before: path.string, query)
        let isSent = received?.utf8.first == UInt8(ascii: "/") && received != Self.target(path, query)
        self.received = isSent ? received : nil
        isAmbiguous =
            self.received.map { Self.path(of: $0) }.map { $0 != path && HiddenSegments.hasDots(in: $0) } ?? false
    }

    /// The URL of a server itself, whose request target is `*` (RFC 9112 section 3.2.4).
    init(server: Origin) {
        (origin, path, query, text) = (server, "/", nil, server.text + "/")
        (received, isAmbiguous) = ("*", false)
    }

    /// The path by which credentials are found and remembered: `path`, or if that is ambiguous, the path as it is sent.
    var loginPath: ExactText { isAmbiguous ? received.map(Self.path(of:)) ?? path : path }

    /// The request target in origin form (RFC 9112 section 3.2.1).
    public var requestTarget: String { received ?? Self.target(path, query) }

    /// The request target in absolute form (RFC 9112 section 3.2.2).
    public var absoluteTarget: String {
        received.map { $0 == "*" ? origin.text : String(joining: origin.text, $0) } ?? text
    }

    private static func path(of target: String) -> ExactText {
        ExactText(String(Substring(target.utf8.prefix { $0 != UInt8(ascii: "?") })))
    }

    private static func target(_ path: ExactText, _ query: String?) -> String {
        query.map { String(joining: path.string, "?", $0) } ?? path.string
    }
}

/// The scheme, host and port of a URL (RFC 6454 section 4). Credentials never cross from one origin to another.
public struct Origin: Sendable, Hashable {
    public enum Scheme: String, Sendable {
        case http, https

        public var defaultPort: Int { self == .https ? 443 : 80 }
    }

    public let scheme: Scheme
    /// A registered name or an address, in lower case; an IPv6 address with its brackets.
    public let host: ExactText
    /// The port, from 1 to 65,535.
    public let port: Int

    /// Without the scheme, which the port usually tells, and whose hash value is that of its text.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(host)
        hasher.combine(port)
    }

    /// The form in a URL, without the default port of the scheme.
    public var text: String { text(before: "", nil) }

    /// Returns the text of a URL at this origin.
    fileprivate func text(before path: String, _ query: String?) -> String {
        let hasPort = port != scheme.defaultPort
        return String(
            joining: scheme == .https ? "https://" : "http://", host.string, hasPort ? ":" : "",
            hasPort ? String(port) : "", path, query == nil ? "" : "?", query ?? "")
    }

    /// Host and port, without the default port of the scheme.
    public var authority: String {
        let hasPort = port != scheme.defaultPort
        return String(joining: host.string, hasPort ? ":" : "", hasPort ? String(port) : "")
    }
}

/// The user and password of a URL (RFC 3986 section 3.2.1). They are used only to answer a challenge from the URL's
/// origin.
public struct UserInfo: Sendable, Equatable {
    public var user: ExactText
    /// `nil` if the URL has only a user.
    public var password: Secret?

    /// Splits at the first colon and percent-decodes both parts.
    /// - Throws: `FetchFailure` of kind `badURL`.
    public init(_ text: Secret) throws(FetchFailure) {
        let halves = text.withUnsafeBytes { bytes -> (user: [UInt8], password: Secret?)? in
            let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
            guard let user = Self.decoded(bytes[..<(colon ?? bytes.count)]) else { return nil }
            guard let colon else { return (user.withUnsafeBytes { Array($0) }, nil) }
            guard let password = Self.decoded(bytes[(colon + 1)...]) else { return nil }
            return (user.withUnsafeBytes { Array($0) }, password)
        }
        guard let halves, let user = String(validating: halves.user, as: UTF8.self) else {
            throw .badURL("malformed user or password in the URL; percent-encode special characters")
        }
        self.user = ExactText(user)
        self.password = halves.password
    }

    /// Returns `nil` for control characters, plain or encoded, for an unencoded `\` or `@`, and for a `%` without two
    /// hexadecimal digits.
    private static func decoded(_ text: Slice<UnsafeRawBufferPointer>) -> Secret? {
        guard !text.contains(where: { $0 == UInt8(ascii: "\\") || $0 == UInt8(ascii: "@") }),
            let secret = Secret(percentDecoding: text),
            !secret.withUnsafeBytes({ $0.contains { $0 < 0x20 || $0 == 0x7F } })
        else { return nil }
        return secret
    }
}
