import ArgumentParser
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

/// All fetches of one command, on one connection: the broker then knows that they are one client's, and asks one question for
/// those that wait for the same log-in. Their bodies have connections of their own.
final class FetchSession {
    private let connection: BrokerConnection
    private let transfers: [Transfer]
    private let atOnce: Int
    private let endsEarly: Bool
    private let display: ProgressDisplay?
    private let began = ContinuousClock.now
    /// Its own question stands at the terminal, for which the other fetches of this command may wait.
    private var isAsking = false
    private var lastWait: String?

    init(
        _ items: [FetchItem], on connection: BrokerConnection, atOnce: Int, showsProgress: Bool, isBarOnly: Bool,
        endsEarly: Bool = false,
        question: (FetchItem) -> TerminalQuestion
    ) {
        self.connection = connection
        self.atOnce = atOnce
        self.endsEarly = endsEarly
        transfers = items.map { Transfer($0, question($0), connection) }
        display = showsProgress ? ProgressDisplay(isBarOnly: isBarOnly, now: 0) : nil
    }

    /// The code to end with: that of the last one that failed.
    func run(isVerbose: Bool) throws -> ExitCode {
        connection.watches = { [unowned self] in
            // Asked after each reply, also while somebody types.
            for transfer in transfers { transfer.attachAgain() }
            return transfers.flatMap { $0.attempt?.watches ?? [] }
        }
        connection.patience = { [unowned self] in patience }
        connection.onNotification = { [unowned self] in note($0, $1, isVerbose: isVerbose) }
        connection.onChallenge = { [unowned self] in answer($0) }
        connection.onRequest = { [unowned self] in reply($0, $1) }
        let hasTerminal = Terminal() != nil
        connection.onCanAuthenticate = { [unowned self] params in
            transfer(params)?.canAsk(about: params, hasTerminal: hasTerminal) ?? false
        }
        defer { StandardError.clear() }
        do throws(ClientFailure) {
            // What cannot be sent twice by us is kept by the broker.
            let canRepeat = transfers.allSatisfy { $0.item.content?.isRepeatable ?? true }
            _ = try connection.call(
                .authSubscribe, ["asksCanAuthenticate": true, "asksNeedBody": .boolean(canRepeat)])
            while transfers.contains(where: { !$0.hasEnded }) {
                try startDue()
                try connection.wait { lookAfter() }
                for transfer in transfers { transfer.conclude() }
                if endsEarly, let failure = transfers.compactMap(\.failure).first {
                    for transfer in transfers where !transfer.hasEnded { transfer.abandon() }
                    return failure
                }
            }
        } catch {
            StandardError.clear()
            for transfer in transfers { transfer.abandon() }
            throw error
        }
        return transfers.compactMap(\.failure).last ?? .success
    }

    /// Whether there is something to do besides waiting.
    private func lookAfter() -> Bool {
        let now = seconds
        let isDue = transfers.contains { $0.isDue } && running < atOnce
        if let display {
            for transfer in transfers { transfer.updateProgress(at: now) }
            display.draw(transfers.filter(\.isVisible).map(\.progress), now: now)
        }
        return isDue || transfers.contains { $0.attempt?.isOver ?? false }
            || running == 0 && transfers.allSatisfy(\.hasEnded)
    }

    private var running: Int { transfers.count { $0.attempt != nil } }
    private var seconds: Double { (ContinuousClock.now - began).milliseconds / 1000 }

    private var patience: Duration? {
        let due = running < atOnce ? transfers.compactMap(\.timeToStart).min() : nil
        let next: Duration? = display == nil ? nil : .milliseconds(100)
        return [due.map { max($0, .milliseconds(1)) }, next].compactMap(\.self).min()
    }

    /// In the order of the command; one that waits for its retry is passed by only where several run at once.
    private func startDue() throws(ClientFailure) {
        for transfer in transfers where running < atOnce && !transfer.hasEnded && transfer.attempt == nil {
            if transfer.isDue { try transfer.begin() } else if atOnce == 1 { return }
        }
    }

    // MARK: What the broker says

    private func transfer(_ params: JSON?) -> Transfer? {
        guard let id = params?["fetchId"]?.string else { return nil }
        return transfers.first { $0.attempt?.fetchID == id }
    }

    private func note(_ method: String, _ params: JSON?, isVerbose: Bool) {
        if isVerbose { Verbose.show(method, params) }
        if method == BrokerMethodName.fetchWaiting.rawValue, let params, !isAsking {
            // Once for all that wait for the same.
            let text = WaitNotice.text(params, isVerbose: isVerbose)
            if let text, text != lastWait { StandardError.write(line: "* \(text)") }
            lastWait = text ?? lastWait
        }
        if let params { transfer(params)?.note(method, params) }
    }

    private func answer(_ challenge: IncomingChallenge) -> ChallengeAnswer? {
        guard let transfer = transfer(challenge.params) else { return .useDefault }
        isAsking = true
        defer { isAsking = false }
        return transfer.answer(challenge) { progress in
            if let display { display.announce(progress) } else { StandardError.clear() }
        }
    }

    private func reply(_ method: String, _ params: JSON) -> JSON? {
        guard method == "fetch/needBody", let transfer = transfer(params) else { return nil }
        return transfer.needBody()
    }
}
