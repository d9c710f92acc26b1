import ArgumentParser
import CPlatform
import JSONText
import WatchwordClient
import WatchwordProtocol

/// An agent without windows: for a machine without a desktop, or in a corner of the screen.
struct AgentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "agent", abstract: "Answer at this terminal what the broker has to ask, for all programs.",
        discussion: """
            Programs that ask nobody themselves have their questions answered here: log-ins, client certificates, servers that \
            are not trusted, and which programs may use what is kept. One question at a time; Ctrl-C ends it. A desktop has \
            watchword-agent, with windows.

            Examples:
              watchword agent
              tmux new-window watchword agent --keep keyring
            """)

    @Option(help: "Where to keep what is typed, once the server has accepted it.")
    var keep = Keep.session

    @Option(help: "Of several agents the one with the highest priority is asked first.")
    var priority = 0

    @OptionGroup var broker: BrokerOptions

    func run() throws {
        guard Terminal() != nil else { throw refusal("There is no terminal to ask at. Run it in one.") }
        let interrupt = watchword_interrupt_descriptor()
        do throws(ClientFailure) {
            let connection = try broker.connect()
            connection.interruptDescriptor = interrupt
            try connection.initialize(name: "watchword agent", version: WatchwordVersion.current, delivery: .request)
            let desk = AgentDesk(connection, keep: keep, interrupt: interrupt)
            let params: JSON = [
                "name": "watchword agent", "priority": .integer(priority), "asksConfirm": true, "maxPending": 1,
            ]
            _ = try connection.call(.agentRegister, params)
            complain("questions of all programs are asked here. Ctrl-C ends that.")
            try desk.serve()
        } catch {
            throw report(error)
        }
    }
}

/// Asks, one question after the other.
private final class AgentDesk {
    private let connection: BrokerConnection
    private let keep: Keep
    private let interrupt: Int32

    init(_ connection: BrokerConnection, keep: Keep, interrupt: Int32) {
        (self.connection, self.keep, self.interrupt) = (connection, keep, interrupt)
    }

    func serve() throws(ClientFailure) {
        connection.onChallenge = { [unowned self] challenge in
            guard let terminal = Terminal() else { return .useDefault }
            terminal.show("\n\(RequesterText.sentence(challenge.params))")
            let question = TerminalQuestion(
                FetchRunParams(url: ""), keep: keep, isInsecure: false, interrupt: interrupt)
            return question.ask(challenge, at: terminal)
        }
        connection.onConfirm = { [unowned self] challenge in
            guard let terminal = Terminal() else { return nil }
            return TerminalConsent(interrupt: interrupt).ask(challenge, at: terminal)
        }
        try connection.wait { false }
    }
}
