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
            bytes.contains(UInt8(ascii: ":")) ? nil : Secret(percentDecoding: bytes[...])
        }
        guard let user = decoded?.withUnsafeBytes({ String(validating: $0, as: UTF8.self) }) else { return nil }
        self.user = ExactText(user)
    }
}
