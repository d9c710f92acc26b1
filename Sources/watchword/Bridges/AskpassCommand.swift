import ArgumentParser
import CPlatform
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

/// A password prompt for other programs (`GIT_ASKPASS`, `SSH_ASKPASS`, `SUDO_ASKPASS`). Also installed as `watchword-askpass`.
struct AskpassCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "askpass", abstract: "Answer another program's prompt for a user or a password.",
        discussion: """
            Answers a prompt of git that names a server with the stored credential, if credentials.hand-out in the \
            configuration releases it to watchword. Shows every other prompt at the terminal.

            Examples:
              GIT_ASKPASS=watchword-askpass git fetch
              SSH_ASKPASS=watchword-askpass SSH_ASKPASS_REQUIRE=force ssh host
            """)

    /// The limits for the characters of a line and for the lines of the prompt; the middle of a longer text is omitted. A host
    /// with a user needs up to 300 characters.
    private static let (longestLine, mostLines) = (1000, 40)

    @OptionGroup var socket: SocketOption

    @Argument(help: "The prompt of the other program.")
    var question: [String] = []

    func run() throws {
        let text = question.joined(separator: " ")
        let userInfo = SecretArguments.taken.userInfos.first?.userInfo
        if let asked = PromptTarget(text, userInfo: userInfo), writeStored(asked) { return }
        try askAtTerminal(text)
    }

    /// Writes the stored credential, if any. Returns `false` on any failure, so that the caller asks at the terminal.
    private func writeStored(_ asked: PromptTarget) -> Bool {
        guard let connection = try? BrokerConnection(socket.location) else { return false }
        connection.callLimit = Patience.withTheBroker
        let params = CredentialGet(pattern: asked.pattern, account: asked.user.map { Account(user: $0) })
        guard let found = try? connection.call(params)["credential"],
            let value = asked.wantsUser ? found["user"] : found["password"]
        else { return false }
        _ = value.withUTF8 { Self.write(Secret(copying: $0)) }
        return true
    }

    private func askAtTerminal(_ text: String) throws {
        guard let terminal = Terminal() else {
            throw refusal("no stored credential found, and no terminal available to ask at")
        }
        // ssh asks only for a confirmation, not for a secret (ssh(1), SSH_ASKPASS_PROMPT).
        let isConfirmation = getenv("SSH_ASKPASS_PROMPT").map { String(cString: $0) } == "confirm"
        let isShown = isConfirmation || text.lowercased().hasPrefix("username") || text.contains("(yes/no")
        let prompt = Self.prompt(text)
        let interrupt = watchword_interrupt_descriptor()
        switch terminal.readLine(prompt, echo: isShown, interrupt: interrupt, broker: -1, isStillOpen: { true }) {
        case .text(let line):
            if isConfirmation && !line.withUnsafeBytes({ $0.elementsEqual("yes".utf8) }) {
                throw ExitCode(ExitStatus.refused)
            }
            Self.write(line)
        case .end, .interrupted, .withdrawn:
            terminal.show("\n")
            throw ExitCode(ExitStatus.refused)
        }
    }

    /// Returns the prompt for display. Its line breaks remain, because ssh, for example, puts a fingerprint on its own line.
    static func prompt(_ text: String) -> String {
        if text.isEmpty { return "Password: " }
        let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        let shown = lines.map { String($0).shortened(to: longestLine) }
        let (first, last) = (shown.prefix(mostLines / 2), shown.dropFirst(mostLines / 2).suffix(mostLines / 2))
        let middle = shown.count > mostLines ? ["…"] : []
        return (first + middle + last).joined(separator: "\n") + (text.hasSuffix(" ") ? "" : " ")
    }

    private static func write(_ value: Secret) {
        let line = Secret(capacity: value.count + 1) { block in
            value.withUnsafeBytes { block.copyMemory(from: $0) }
            block[value.count] = UInt8(ascii: "\n")
            return value.count + 1
        }
        line.withUnsafeBytes { _ = Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }
}

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
