import Glibc
import WatchwordProtocol

/// What git says of a server and a log-in: lines of `name=value`, to an empty one (git-credential(1), "INPUT/OUTPUT FORMAT").
struct GitDescription {
    static let longest = 64 << 10
    private static let names: Set = [
        "protocol", "host", "path", "username", "password_expiry_utc", "ephemeral", "capability[]",
    ]

    private(set) var scheme: String?
    private(set) var host: String?
    /// From "/" on; `nil` unless the user wants git to tell repositories apart (`credential.useHttpPath`).
    private(set) var path: ExactText?
    private(set) var user: ExactText?
    private(set) var password: Secret?
    /// Since 1970; git forgets the password then.
    private(set) var expiresAt: Duration?
    private(set) var refreshToken: Secret?
    /// Not to be kept.
    private(set) var isEphemeral = false
    /// This git takes other things than passwords.
    private(set) var knowsAuthtype = false

    /// `nil` when it is too long, or not text.
    static func fromStandardInput() throws -> GitDescription? {
        var isWhole = false
        let text = Secret(capacity: longest) { block in
            var count = 0
            while count < block.count {
                let received = read(STDIN_FILENO, block.baseAddress?.advanced(by: count), block.count - count)
                if received < 0 && errno == EINTR { continue }
                guard received > 0 else {
                    isWhole = received == 0
                    break
                }
                let said = UnsafeMutableRawBufferPointer(rebasing: block[..<(count + received)])
                isWhole = hasEmptyLine(said, from: count)
                count += received
                if isWhole { break }
            }
            return count
        }
        return isWhole ? GitDescription(text) : nil
    }

    /// Whoever waits for the answer need not close its end first.
    private static func hasEmptyLine(_ text: UnsafeMutableRawBufferPointer, from start: Int) -> Bool {
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
        // A token, which never becomes a text; git keeps it itself.
        if name == "credential" { return true }
        // What servers say (`wwwauth[]`), in whatever encoding, is not looked at, as everything that is not known.
        guard Self.names.contains(name) else { return true }
        guard let text = String(validating: value, as: UTF8.self) else { return false }
        switch name {
        case "protocol": scheme = text
        case "host": host = text
        case "path":
            path = text.isEmpty ? nil : text.utf8.first == UInt8(ascii: "/") ? ExactText(text) : "/\(text)"
        case "username": user = ExactText(text)
        case "password_expiry_utc":
            // As git does, what is no number is no expiry.
            expiresAt = Int(text).flatMap { (0...253_402_300_799).contains($0) ? .seconds($0) : nil }
        case "ephemeral": isEphemeral = !["0", "false", ""].contains(text)
        case "capability[]": if text == "authtype" { knowsAuthtype = true }
        default: break
        }
        return true
    }

    /// `nil` for what is not fetched over HTTP, and for a host that is none.
    var pattern: SpacePattern? {
        guard let scheme, scheme == "https" || scheme == "http", let host,
            let place = try? HostPort(host[...]), HostName.canonical(place.host) != nil
        else { return nil }
        return SpacePattern(
            scheme: scheme, host: ExactText(place.host), port: place.port ?? (scheme == "https" ? 443 : 80))
    }
}
