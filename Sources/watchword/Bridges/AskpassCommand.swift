import ArgumentParser
import CPlatform
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

/// A password prompt for other programs (`GIT_ASKPASS`, `SSH_ASKPASS`, `SUDO_ASKPASS`). Also installed as `watchword-askpass`.
struct AskpassCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "askpass", "Answer another program's prompt for a user or a password.",
        """
        Answers a prompt of git that names a server with the stored credential, if credentials.hand-out in the \
        configuration releases it to watchword. Shows every other prompt at the terminal, or, without one, in a window \
        of watchword-agent.
        """,
        examples: "GIT_ASKPASS=watchword-askpass git fetch",
        "SSH_ASKPASS=watchword-askpass SSH_ASKPASS_REQUIRE=force ssh host")

    /// Set by watchword-agent for the program in its own SSH_ASKPASS, which must not ask the agent again.
    private static let agentVariable = "WATCHWORD_ASKPASS_OF_AGENT"

    @OptionGroup var socket: SocketOption

    @Argument(help: "The prompt of the other program.")
    var question: [String] = []

    func run() throws {
        let prompt = AskpassPrompt(question.joined(separator: " "), environment: Environment.text)
        let broker = connect()
        let userInfo = SecretArguments.taken.userInfos.first?.userInfo
        if let broker, let asked = PromptTarget(prompt.text, userInfo: userInfo), writeStored(asked, broker) { return }
        if !prompt.prefersAgent, let terminal = usableTerminal() { return try ask(prompt, at: terminal) }
        switch askAgent(prompt, broker) {
        case .answered(let answer): try write(answer, to: prompt)
        case .ended(let code): throw code
        case .unavailable(let reason):
            if let terminal = usableTerminal() { return try ask(prompt, at: terminal) }
            throw refusal("no terminal available to ask at, and no agent: \(reason)")
        }
    }

    /// Returns `nil` if the broker cannot be used; a broker that is started now would have no agent.
    private func connect() -> BrokerConnection? {
        guard let connection = try? BrokerConnection(socket.location) else { return nil }
        connection.callLimit = Patience.withTheBroker
        let greeted = try? connection.initialize(
            name: "watchword askpass", version: WatchwordVersion.current, delivery: nil)
        return greeted == nil ? nil : connection
    }

    /// Writes the stored credential, if any. Returns `false` on any failure, so that the caller asks a person.
    private func writeStored(_ asked: PromptTarget, _ broker: BrokerConnection) -> Bool {
        let params = CredentialGet(pattern: asked.pattern, account: asked.user.map { Account(user: $0) })
        guard let found = try? broker.call(params)["credential"],
            let value = asked.wantsUser ? found["user"] : found["password"]
        else { return false }
        _ = value.withUTF8 { Self.write(Secret(copying: $0)) }
        return true
    }

    // MARK: At an agent

    /// The outcome of a prompt at an agent.
    private enum Outcome {
        /// The result of `prompt/ask`, which may contain a secret.
        case answered(JSON)
        /// No agent can be asked.
        case unavailable(String)
        /// The prompt was cancelled, timed out or may not be shown.
        case ended(ExitCode)
    }

    private func askAgent(_ prompt: AskpassPrompt, _ broker: BrokerConnection?) -> Outcome {
        guard getenv(Self.agentVariable) == nil else {
            return .unavailable("this is a prompt of watchword-agent itself; set its SSH_ASKPASS to another program")
        }
        guard let broker else { return .unavailable("no broker answers at \(socket.location.path); start watchwordd") }
        broker.callLimit = nil
        broker.interruptDescriptor = watchword_interrupt_descriptor()
        broker.watches = { Self.callerWatches }
        do throws(ClientFailure) { return .answered(try broker.call(prompt.question)) } catch {
            return Self.outcome(error)
        }
    }

    /// Ends this process, and with it the window, when the calling program reads the answer no longer.
    private static var callerWatches: [Watch] {
        var facts = stat()
        guard fstat(STDOUT_FILENO, &facts) == 0, facts.st_mode & S_IFMT == S_IFIFO else { return [] }
        return [Watch(STDOUT_FILENO) { Glibc.exit(ExitStatus.refused) }]
    }

    private static func outcome(_ failure: ClientFailure) -> Outcome {
        guard case .refused(let error) = failure else {
            if case .interrupted = failure { return .ended(report(failure)) }
            return .unavailable(failure.description)
        }
        switch error.kind {
        case .challengeCancelled: return .ended(ExitCode(ExitStatus.refused))
        case .noAgent, .methodNotFound: return .unavailable(error.text)
        default: return .ended(reportRefusal(failure))
        }
    }

    private func write(_ answer: JSON, to prompt: AskpassPrompt) throws {
        if let value = answer["value"] {
            _ = value.withUTF8 { Self.write(Secret(copying: $0)) }
        } else if let isAllowed = answer["allow"]?.boolean {
            try write(isAllowed, prompt)
        }
    }

    // MARK: At the terminal

    /// Returns the terminal if the calling program is in its foreground. An editor that was started in the background of a
    /// terminal is not.
    private func usableTerminal() -> Terminal? {
        guard let terminal = Terminal(), terminal.isInForeground else { return nil }
        return terminal
    }

    private func ask(_ prompt: AskpassPrompt, at terminal: borrowing Terminal) throws {
        let text = PromptText.beforeCursor(prompt.text)
        if prompt.kind == .information { return terminal.show(text + "\n") }
        let interrupt = watchword_interrupt_descriptor()
        let line = terminal.readLine(
            text, echo: prompt.kind != .secret, interrupt: interrupt)
        switch line {
        // The answer to ssh's question about a host may also be a fingerprint.
        case .text(let line) where prompt.kind != .confirmation || prompt.printsRefusal: Self.write(line)
        case .text(let line): try write(line.withUnsafeBytes { $0.elementsEqual("yes".utf8) }, prompt)
        case .end, .interrupted, .withdrawn:
            terminal.show("\n")
            throw ExitCode(ExitStatus.refused)
        }
    }

    // MARK: Output

    private func write(_ isAllowed: Bool, _ prompt: AskpassPrompt) throws {
        guard isAllowed || prompt.printsRefusal else { throw ExitCode(ExitStatus.refused) }
        Self.write(Secret(joining: [.text(isAllowed ? "yes" : "no")]))
    }

    private static func write(_ value: Secret) {
        let line = Secret(joining: [.secret(value), .text("\n")])
        line.withUnsafeBytes { _ = Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }
}
