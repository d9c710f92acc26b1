internal import WatchwordProtocol

/// The Basic scheme (RFC 7617).
enum BasicScheme {
    /// Whether the user name can be sent: the first colon ends it (RFC 7617 section 2), so it must not contain one.
    // guard: basic-colon
    static func canCarry(_ credential: LoginCredential) -> Bool { !credential.user.utf8.contains(UInt8(ascii: ":")) }

    /// Returns the value of the `Authorization` or `Proxy-Authorization` field.
    static func authorization(for credential: LoginCredential) -> Secret {
        let plain = Secret(joining: [.text("\(credential.user):"), .secret(credential.secret)])
        let prefix = Array("Basic ".utf8)
        let encodedCount = Base64.encodedCount(plain.count)
        return Secret(capacity: prefix.count + encodedCount) { destination in
            destination.copyBytes(from: prefix)
            plain.withUnsafeBytes {
                Base64.encode($0, into: UnsafeMutableRawBufferPointer(rebasing: destination[prefix.count...]))
            }
            return prefix.count + encodedCount
        }
    }
}
