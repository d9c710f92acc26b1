public import WatchwordProtocol

/// The secret of a keyring item: a password, and in further lines its expiry and its refresh token.
///
/// The lines have the form of git's helper for libsecret (git 2.41): `password_expiry_utc=` with seconds since 1970,
/// and `oauth_refresh_token=`. Unknown lines of the form `name=value` are ignored. A text with lines of another form,
/// and neither of these two, is one password.
public struct KeyringSecret: Sendable, Equatable {
    public let password: Secret
    /// The time, since 1970, when the password expires; `nil` for never.
    public let expiresAt: Duration?
    public let refreshToken: Secret?

    private static let expiry = "password_expiry_utc"
    private static let token = "oauth_refresh_token"

    private init(password: Secret, expiresAt: Duration? = nil, refreshToken: Secret? = nil) {
        (self.password, self.expiresAt, self.refreshToken) = (password, expiresAt, refreshToken)
    }

    /// Returns `nil` if the expiry is malformed: it is then unknown whether the password is still valid.
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

    /// 31 December 9999, the last day that RFC 3339 can express.
    private static let latest = 253_402_300_799

    private struct Parts {
        var password: Secret
        var expiry: UnsafeRawBufferPointer?
        var token: Secret?
        /// Whether one of the lines of git's helper occurs.
        var isGits = false
    }

    /// Returns the value of `name` in `line`; `nil` if the line has another name.
    private static func value(_ name: String, _ line: Slice<UnsafeRawBufferPointer>) -> UnsafeRawBufferPointer? {
        guard line.starts(with: "\(name)=".utf8) else { return nil }
        return UnsafeRawBufferPointer(rebasing: line.dropFirst(name.utf8.count + 1))
    }

    private static func isNamed(_ line: Slice<UnsafeRawBufferPointer>) -> Bool {
        guard let mark = line.firstIndex(of: UInt8(ascii: "=")), mark > line.startIndex else { return false }
        return line[..<mark].allSatisfy { $0 == UInt8(ascii: "_") || (0x61...0x7A).contains($0) }
    }

    /// Returns `nil` if the whole text is one password.
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

    /// Returns the seconds since 1970; `nil` if they are malformed or out of range.
    private static func seconds(_ digits: UnsafeRawBufferPointer) -> Int? {
        guard !digits.isEmpty, digits.count <= 12, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        let seconds = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        return seconds <= latest ? seconds : nil
    }

    /// Returns the secret of an item for `credential`, in the form that git's helper reads.
    public static func text(of credential: LoginCredential) -> Secret {
        var parts: [SecretPart] = [.secret(credential.secret)]
        if let expiresAt = credential.expiresAt {
            parts.append(.text("\n\(expiry)=\(expiresAt.components.seconds)"))
        }
        if let refreshToken = credential.refreshToken { parts += [.text("\n\(token)="), .secret(refreshToken)] }
        return parts.count == 1 ? credential.secret : Secret(joining: parts)
    }
}
