import WatchwordProtocol

/// The server in a prompt of git: `Username for 'https://host': `, `Password for 'https://bob@host': `.
struct PromptTarget {
    let pattern: SpacePattern
    let user: ExactText?
    let wantsUser: Bool

    /// - Parameter userInfo: The user information that was removed from the URL in the prompt.
    init?(_ question: String, userInfo: Secret?) {
        wantsUser = question.hasPrefix("Username for '")
        // The prompt must match completely, and the URL must not contain characters that could disguise its host, because other
        // programs show untrusted text in their prompts.
        guard wantsUser || question.hasPrefix("Password for '"), question.hasSuffix("': "),
            let end = question.lastIndex(of: "'"), !question.contains(where: { "?#\\".contains($0) })
        else { return nil }
        let start = question.index(question.startIndex, offsetBy: "Username for '".count)
        guard start < end, let pattern = try? Site(url: String(question[start..<end])).pattern else { return nil }
        self.pattern = pattern
        guard let userInfo else {
            user = nil
            return
        }
        // User information with a password never becomes a `String`. Without the user name nothing matches, because
        // another user's password must not be used.
        let decoded = userInfo.withUnsafeBytes { bytes in
            bytes.contains(UInt8(ascii: ":")) ? nil : Self.decoded(bytes)
        }
        guard let decoded else { return nil }
        user = ExactText(decoded)
    }

    /// Decodes percent-encoding (RFC 3986 section 2.1).
    private static func decoded(_ bytes: UnsafeRawBufferPointer) -> String? {
        var decoded: [UInt8] = []
        var rest = bytes[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard rest.count >= 2,
                let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else { return nil }
            decoded.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: decoded, as: UTF8.self)
    }
}
