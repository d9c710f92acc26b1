public import WatchwordProtocol

/// What the secret of an item of the keyring says: a password, and in further lines when it expires and its refresh token.
///
/// The lines are those of git's helper for libsecret (git 2.41): `password_expiry_utc=` with seconds since 1970, and
/// `oauth_refresh_token=`. Further lines of the form `name=value` that are unknown are passed over; a text with any other
/// further lines, and none of these two, is one password.
public struct KeyringSecret: Sendable, Equatable {
    public let password: Secret
    /// Since 1970.
    public let expiresAt: Duration?
    public let refreshToken: Secret?

    private static let expiry = "password_expiry_utc"
    private static let token = "oauth_refresh_token"

    private init(password: Secret, expiresAt: Duration? = nil, refreshToken: Secret? = nil) {
        (self.password, self.expiresAt, self.refreshToken) = (password, expiresAt, refreshToken)
    }

    /// `nil` when it says something of the expiry that is no time: nobody knows whether the password may still be sent.
    public init?(_ text: Secret) {
        let read = text.withUnsafeBytes { bytes -> KeyringSecret? in
            guard let parts = Self.split(bytes) else { return KeyringSecret(password: text) }
            let seconds = parts.expiry.map { Self.seconds($0) }
            if case .some(nil) = seconds { return nil }
            return KeyringSecret(
                password: parts.password, expiresAt: (seconds ?? nil).map { .seconds($0) }, refreshToken: parts.token)
        }
        guard let read else { return nil }
        self = read
    }

    /// 31 December 9999, the last day that RFC 3339 can write.
    private static let latest = 253_402_300_799

    private struct Parts {
        var password: Secret
        var expiry: UnsafeRawBufferPointer?
        var token: Secret?
        /// One of the lines that git's helper writes today is there.
        var isGits = false
    }

    /// The value of `name` in `line`; `nil` for a line that says something else.
    private static func value(_ name: String, _ line: Slice<UnsafeRawBufferPointer>) -> UnsafeRawBufferPointer? {
        guard line.starts(with: "\(name)=".utf8) else { return nil }
        return UnsafeRawBufferPointer(rebasing: line.dropFirst(name.utf8.count + 1))
    }

    private static func isNamed(_ line: Slice<UnsafeRawBufferPointer>) -> Bool {
        guard let mark = line.firstIndex(of: UInt8(ascii: "=")), mark > line.startIndex else { return false }
        return line[..<mark].allSatisfy { $0 == UInt8(ascii: "_") || (0x61...0x7A).contains($0) }
    }

    /// `nil` for a text that is one password.
    private static func split(_ bytes: UnsafeRawBufferPointer) -> Parts? {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let further = lines.dropFirst().filter { !$0.isEmpty }
        guard let first = lines.first, !further.isEmpty else { return nil }
        var parts = Parts(password: Secret(copying: UnsafeRawBufferPointer(rebasing: first)))
        for line in further {
            if let expiry = value(expiry, line) { (parts.expiry, parts.isGits) = (expiry, true) }
            if let token = value(token, line) { (parts.token, parts.isGits) = (Secret(copying: token), true) }
        }
        return parts.isGits || further.allSatisfy { isNamed($0) } ? parts : nil
    }

    /// Seconds since 1970; `nil` for what is no such number.
    private static func seconds(_ digits: UnsafeRawBufferPointer) -> Int? {
        guard !digits.isEmpty, digits.count <= 12, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let seconds = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        return seconds <= latest ? seconds : nil
    }

    /// How `credential` is written, for others to read as well.
    public static func text(of credential: LoginCredential) -> Secret {
        var parts: [Part] = [.secret(credential.secret)]
        if let expiresAt = credential.expiresAt {
            parts.append(.text("\n\(expiry)=\(expiresAt.components.seconds)"))
        }
        if let refreshToken = credential.refreshToken { parts += [.text("\n\(token)="), .secret(refreshToken)] }
        return parts.count == 1 ? credential.secret : Secret(joining: parts)
    }
}
