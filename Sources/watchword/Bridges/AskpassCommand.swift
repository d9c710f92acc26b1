import ArgumentParser
import CPlatform
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

/// For programs that run another one to ask for a password (`GIT_ASKPASS`, `SSH_ASKPASS`, `SUDO_ASKPASS`): also the program
/// `watchword-askpass`.
struct AskpassCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "askpass", abstract: "Answer another program's question for a user or a password.",
        discussion: """
            A question of git's that names a server is answered with what is kept for that, where credentials.hand-out in the \
            configuration lets watchword have it. Every other question is asked at the terminal.

            Examples:
              GIT_ASKPASS=watchword-askpass git fetch
              SSH_ASKPASS=watchword-askpass SSH_ASKPASS_REQUIRE=force ssh host
            """)

    /// Characters of a line, and lines, that are shown; the middle of more is left out. A host with a user takes 300.
    private static let (longestLine, mostLines) = (1000, 40)

    @OptionGroup var socket: SocketOption

    @Argument(help: "The question, as the other program words it.")
    var question: [String] = []

    func run() throws {
        let text = question.joined(separator: " ")
        if let asked = AskedServer(text, userInfo: SecretArguments.taken.userInfos.first?.userInfo), kept(asked) {
            return
        }
        try askAtTerminal(text)
    }

    /// Whether it has been written. That something is in the way is a reason to ask, and no error.
    private func kept(_ asked: AskedServer) -> Bool {
        guard let connection = try? BrokerConnection(socket.location) else { return false }
        connection.callLimit = Patience.withTheBroker
        let params = CredentialGetParams(pattern: asked.pattern, account: asked.user.map { Account(user: $0) })
        guard let found = try? connection.call(.credentialGet, params.json)["credential"],
            let value = asked.wantsUser ? found["user"] : found["password"]
        else { return false }
        _ = value.withUTF8 { Self.write(Secret(copying: $0)) }
        return true
    }

    private func askAtTerminal(_ text: String) throws {
        guard let terminal = Terminal() else {
            throw refusal("There is no terminal to ask at, and nothing is kept that answers it.")
        }
        // ssh asks so before it trusts a host (ssh(1), SSH_ASKPASS_PROMPT).
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

    /// The question, line by line as the other program has laid it out: ssh shows a fingerprint in one of them.
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

/// The server that a question of git's is about: `Username for 'https://host': `, `Password for 'https://bob@host': `.
struct AskedServer {
    let pattern: SpacePattern
    let user: ExactText?
    let wantsUser: Bool

    /// - Parameter userInfo: what has been taken out of the question's URL.
    init?(_ question: String, userInfo: Secret?) {
        wantsUser = question.hasPrefix("Username for '")
        // Whole, and with nothing in the URL behind which another host could stand: other programs show what strangers say.
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
        // Where a password is in it, nothing of it becomes a text. Another user's password is no answer.
        let decoded = userInfo.withUnsafeBytes { bytes in
            bytes.contains(UInt8(ascii: ":")) ? nil : Self.decoded(bytes)
        }
        guard let decoded else { return nil }
        user = ExactText(decoded)
    }

    /// Without percent encoding (RFC 3986 section 2.1).
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
