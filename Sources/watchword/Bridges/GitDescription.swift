import Glibc
import WatchwordProtocol

/// A server and a login in git's format: lines of `name=value` up to an empty line (git-credential(1), "INPUT/OUTPUT FORMAT").
struct GitDescription {
    /// The size limit in bytes.
    static let longest = 64 << 10
    /// The attributes whose values are text.
    private enum Attribute: String {
        case host, path, ephemeral
        case scheme = "protocol"
        case user = "username"
        case expiry = "password_expiry_utc"
        case capability = "capability[]"
    }

    private(set) var scheme: String?
    private(set) var host: String?
    /// The path, beginning with "/"; `nil` unless git distinguishes repositories (`credential.useHttpPath`).
    private(set) var path: ExactText?
    private(set) var user: ExactText?
    private(set) var password: Secret?
    /// The time, since 1970, when the password expires.
    private(set) var expiresAt: Duration?
    private(set) var refreshToken: Secret?
    /// The token of an `authtype`.
    private(set) var token: Secret?
    /// Whether the login must not be stored.
    private(set) var isEphemeral = false
    /// Whether git supports credentials other than passwords.
    private(set) var knowsAuthtype = false

    /// Reads a description. Returns `nil` if it is too long, or not text.
    static func fromStandardInput() throws -> GitDescription? {
        var (error, hasEnded): (Int32, Bool) = (0, false)
        let text = Secret(reading: STDIN_FILENO, capacity: longest, error: &error) { bytes, seen in
            hasEnded = hasEmptyLine(bytes, from: seen)
            return hasEnded
        }
        return hasEnded || error == 0 && text.count < longest ? GitDescription(text) : nil
    }

    /// Whether the description is complete. The sender need not close its end of the pipe before it has the reply.
    private static func hasEmptyLine(_ text: UnsafeRawBufferPointer, from start: Int) -> Bool {
        let end = UInt8(ascii: "\n")
        return text[start...].indices.contains { text[$0] == end && ($0 == 0 || text[$0 - 1] == end) }
    }

    init?(_ text: Secret) {
        let isText = text.withUnsafeBytes { bytes in
            for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
                if line.isEmpty { break }
                guard take(UnsafeRawBufferPointer(rebasing: line)) else { return false }
            }
            return true
        }
        guard isText else { return nil }
    }

    private mutating func take(_ line: UnsafeRawBufferPointer) -> Bool {
        guard let mark = line.firstIndex(of: UInt8(ascii: "=")),
            let name = String(validating: line[..<mark], as: UTF8.self)
        else { return false }
        let value = UnsafeRawBufferPointer(rebasing: line[(mark + 1)...])
        if name == "password" {
            password = Secret(copying: value)
            return true
        }
        if name == "oauth_refresh_token" {
            refreshToken = value.isEmpty ? nil : Secret(copying: value)
            return true
        }
        if name == "credential" {
            token = Secret(copying: value)
            return true
        }
        // Other attributes are ignored, as git requires; text from servers (`wwwauth[]`) may have any encoding.
        guard let attribute = Attribute(rawValue: name) else { return true }
        guard let text = String(validating: value, as: UTF8.self) else { return false }
        switch attribute {
        case .scheme: scheme = text
        case .host: host = text
        case .path:
            path = text.isEmpty ? nil : text.utf8.first == UInt8(ascii: "/") ? ExactText(text) : "/\(text)"
        case .user: user = ExactText(text)
        case .expiry:
            // An invalid number means that the password does not expire, as in git.
            expiresAt = Int(text).flatMap { (0...253_402_300_799).contains($0) ? .seconds($0) : nil }
        case .ephemeral: isEphemeral = !["0", "false", ""].contains(text)
        case .capability: if text == "authtype" { knowsAuthtype = true }
        }
        return true
    }

    /// The server; `nil` if the protocol is not HTTP or the host is invalid.
    var pattern: SpacePattern? {
        guard let scheme, scheme == "https" || scheme == "http", let host,
            let place = try? HostPort(host[...]), HostName.canonical(place.host) != nil
        else { return nil }
        return SpacePattern(
            scheme: scheme, host: ExactText(place.host), port: place.port ?? (scheme == "https" ? 443 : 80))
    }
}
