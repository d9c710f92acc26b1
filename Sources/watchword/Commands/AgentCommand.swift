import ArgumentParser
import CPlatform
import JSONText
import WatchwordClient
import WatchwordProtocol

/// An agent at a terminal, for machines without a desktop.
struct AgentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "agent", "Answer the broker's questions at this terminal, for all programs.",
        """
        Prompts for programs that cannot prompt themselves: for logins, client certificates, untrusted servers, and the \
        use of stored credentials. Also shows the prompts of watchword askpass. Shows one question at a time. Ctrl-C ends the agent. On a desktop, use watchword-agent, \
        which shows windows.
        """,
        examples: "watchword agent", "tmux new-window watchword agent --keep keyring")

    @Option(help: "Where to store the login you type, once the server has accepted it.")
    var keep = LoginStorage.session

    @Option(help: "The priority of this agent; the agent with the highest is asked first.")
    var priority = 0

    @OptionGroup var broker: BrokerStartOptions

    func run() throws {
        guard Terminal() != nil else { throw refusal("no terminal available; run watchword agent in one") }
        let interrupt = watchword_interrupt_descriptor()
        do throws(ClientFailure) {
            let connection = try broker.connect()
            connection.interruptDescriptor = interrupt
            try connection.initialize(name: "watchword agent", version: WatchwordVersion.current, delivery: .request)
            let desk = AgentSession(connection, storage: keep, interrupt: interrupt)
            let params: JSON = [
                "name": "watchword agent", "priority": .integer(priority), "asksConfirm": true, "asksPrompt": true,
                "maxPending": 1,
            ]
            try connection.call(AgentRegister.name, params)
            try warnWithoutKeyring(connection)
            printError("showing the questions of all programs; stop with Ctrl-C")
            try desk.serve()
        } catch {
            throw reportRefusal(error)
        }
    }

    /// Prints a note if `--keep keyring` has no effect at present. The agent serves nevertheless: the keyring may become usable.
    private func warnWithoutKeyring(_ connection: BrokerConnection) throws(ClientFailure) {
        guard keep == .keyring else { return }
        let status = try connection.call(KeyringStatus())
        guard status["state"]?.string != "usable" else { return }
        let effect = "until it is usable, logins are stored for the session only"
        printError("the keyring is \(KeyringText.line(status)); \(effect)")
    }
}

/// Asks one question after the other.
private final class AgentSession {
    private let connection: BrokerConnection
    private let storage: LoginStorage
    private let interrupt: Int32
    /// The subjects of programs for which a question was refused before.
    private var refused: Set<String> = []

    init(_ connection: BrokerConnection, storage: LoginStorage, interrupt: Int32) {
        (self.connection, self.storage, self.interrupt) = (connection, storage, interrupt)
    }

    func serve() throws(ClientFailure) {
        connection.onAgentChallenge = { [unowned self] challenge in
            guard let terminal = Terminal() else { return AgentAnswer(.useDefault) }
            terminal.show("\n\(RequesterText.sentence(challenge.params))")
            let question = TerminalQuestion(
                FetchRunParams(url: ""), storage: storage, isInsecure: false, interrupt: interrupt)
            let answer = question.ask(challenge, at: terminal)
            guard answer == .proceed || answer == .reject, wantsNoMore(challenge, at: terminal) else {
                return answer.map { AgentAnswer($0) }
            }
            return AgentAnswer(.cancel, stopsAsking: true)
        }
        connection.onConfirm = { [unowned self] challenge in
            guard let terminal = Terminal() else { return nil }
            let answer = TerminalConsent(interrupt: interrupt).ask(challenge, at: terminal)
            let isRefusal = answer?["allow"]?.string == Consent.no.rawValue
            return isRefusal && wantsNoMore(challenge, at: terminal) ? answer?.adding(["stopAsking": true]) : answer
        }
        connection.onPrompt = { [unowned self] prompt in
            guard let terminal = Terminal() else { return nil }
            let answer = TerminalPrompt(interrupt: interrupt).ask(prompt, at: terminal)
            let isRefusal =
                answer?["action"]?.string == PromptReply.Action.cancel.rawValue
                && prompt.params["kind"]?.string != ProgramPrompt.Kind.information.rawValue
            return isRefusal && wantsNoMore(prompt, at: terminal) ? answer?.adding(["stopAsking": true]) : answer
        }
        try connection.wait { false }
    }

    /// Asks after a second or later refusal whether to stop all questions of the program.
    private func wantsNoMore(_ challenge: IncomingChallenge, at terminal: borrowing Terminal) -> Bool {
        guard !refused.insert(RequesterText.subject(challenge.params)).inserted else { return false }
        let line = terminal.readLine(
            "Stop all questions of \(RequesterText.subject(challenge.params))? y/N: ", echo: true,
            interrupt: interrupt, of: challenge)
        guard case .text(let text) = line, ["y", "yes"].contains(text.lowercasedWord) else { return false }
        terminal.show("Its questions are stopped. To allow them again, run: watchword prompts resume PROGRAM\n")
        return true
    }
}
