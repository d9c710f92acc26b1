internal import WatchwordProtocol

/// The Basic scheme (RFC 7617).
enum BasicScheme {
    /// Section 2: the first colon ends the user name, so a name that holds one cannot be sent.
    static func canCarry(_ credential: LoginCredential) -> Bool { !credential.user.utf8.contains(UInt8(ascii: ":")) }

    /// The value of the `Authorization` field.
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
