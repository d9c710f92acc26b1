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
    /// The programs of which a question was refused.
    private var refused: Set<String> = []

    init(_ connection: BrokerConnection, keep: Keep, interrupt: Int32) {
        (self.connection, self.keep, self.interrupt) = (connection, keep, interrupt)
    }

    func serve() throws(ClientFailure) {
        connection.onAgentChallenge = { [unowned self] challenge in
            guard let terminal = Terminal() else { return AgentAnswer(.useDefault) }
            terminal.show("\n\(RequesterText.sentence(challenge.params))")
            let question = TerminalQuestion(
                FetchRunParams(url: ""), keep: keep, isInsecure: false, interrupt: interrupt)
            let answer = question.ask(challenge, at: terminal)
            let isRefusal = answer == .proceed || answer == .reject
            guard isRefusal, wantsNoMore(challenge, at: terminal) else {
                return answer.map { AgentAnswer($0) }
            }
            return AgentAnswer(.cancel, stopsAsking: true)
        }
        connection.onConfirm = { [unowned self] challenge in
            guard let terminal = Terminal() else { return nil }
            let answer = TerminalConsent(interrupt: interrupt).ask(challenge, at: terminal)
            let isRefusal = answer?["allow"]?.string == Consent.no.rawValue
            guard isRefusal, wantsNoMore(challenge, at: terminal) else { return answer }
            return answer?.adding(["stopAsking": true])
        }
        try connection.wait { false }
    }

    /// After a refusal: whether the program is to be asked about no more. Not after the first one.
    private func wantsNoMore(_ challenge: IncomingChallenge, at terminal: borrowing Terminal) -> Bool {
        guard !refused.insert(RequesterText.subject(challenge.params)).inserted else { return false }
        let line = terminal.readLine(
            "Stop all questions of \(RequesterText.subject(challenge.params))? y/N: ", echo: true,
            interrupt: interrupt, broker: challenge.descriptor,
            isStillOpen: { challenge.isStillOpen }, watches: { challenge.watches })
        guard case .text(let text) = line else { return false }
        let word = text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }.lowercased()
        guard ["y", "yes"].contains(word) else { return false }
        terminal.show("It is asked about no more, until: watchword prompts resume\n")
        return true
    }
}
