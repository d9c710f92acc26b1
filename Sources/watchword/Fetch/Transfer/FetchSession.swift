import ArgumentParser
import CPlatform
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

/// Runs the fetches of one command.
struct FetchBatch {
    var items: [FetchItem]
    var location: SocketLocation
    /// Whether to start a broker if none is running.
    var mayStart: Bool
    var showsProgress: Bool
    var storage = LoginStorage.session
    var isInsecure = false
    var isBarOnly = false
    var isVerbose = false
    var maxConcurrent = 1
    /// `--fail-early`
    var endsEarly = false

    /// - Throws: the exit code, if it is not 0.
    func run(interrupt: Int32 = watchword_interrupt_descriptor()) throws {
        var code = ExitCode.success
        do {
            let connection = try BrokerLauncher.connect(location, mayStart: mayStart)
            connection.interruptDescriptor = interrupt
            try connection.initialize(name: "watchword", version: WatchwordVersion.current, delivery: .request)
            // Only one prompt is shown at a time. With this limit, the broker sends the next challenge, and starts its
            // timeout, after the previous one is answered.
            if maxConcurrent > 1 { try connection.call(AuthSubscribe.name, ["maxPending": 1]) }
            let session = FetchSession(self, on: connection, interrupt: interrupt)
            code = try session.run()
        } catch let failure as ClientFailure {
            throw report(failure)
        }
        if code != .success { throw code }
    }
}

/// All fetches of one command, on one connection. The broker therefore treats them as one client, and sends one challenge for
/// all fetches that need the same login. The bodies use separate connections.
final class FetchSession {
    private let connection: BrokerConnection
    private let batch: FetchBatch
    private let transfers: [FetchTransfer]
    private let display: ProgressDisplay?
    private let began = ContinuousClock.now
    /// Whether a prompt of this command is open. Its other fetches may be waiting for the answer.
    private var isAsking = false
    private var lastWait: String?

    init(_ batch: FetchBatch, on connection: BrokerConnection, interrupt: Int32) {
        (self.batch, self.connection) = (batch, connection)
        transfers = batch.items.map { item in
            let question = TerminalQuestion(
                item.params, storage: batch.storage, isInsecure: batch.isInsecure, interrupt: interrupt)
            return FetchTransfer(item, question, connection)
        }
        display = batch.showsProgress ? ProgressDisplay(isBarOnly: batch.isBarOnly, now: 0) : nil
    }

    /// Runs all fetches. Returns the exit code of the last one that failed, or with `--fail-early` of the first. If none failed,
    /// but the keyring does not contain a login that it should, returns the code for that.
    func run() throws -> ExitCode {
        connection.watches = { [unowned self] in
            // Called after each reply, also while a prompt is open.
            for transfer in transfers { transfer.attachAgain() }
            return transfers.flatMap { $0.attempt?.watches ?? [] }
        }
        connection.maxWait = { [unowned self] in maxWait }
        connection.onNotification = { [unowned self] in receive($0, $1) }
        connection.onChallenge = { [unowned self] in answer($0) }
        connection.onRequest = { [unowned self] in reply($0, $1) }
        connection.onCanAuthenticate = { [unowned self] in transfer($0)?.canAsk(about: $0) ?? false }
        defer { StandardError.clear() }
        do throws(ClientFailure) {
            // The broker buffers request bodies unless this client can send all of them again.
            let canRepeat = transfers.allSatisfy { $0.item.content?.isRepeatable ?? true }
            try connection.call(
                AuthSubscribe.name,
                [
                    "asksCanAuthenticate": true, "asksNeedBody": .boolean(canRepeat),
                    "methods": Terminal() == nil ? methodsWithoutTerminal : nil,
                ])
            while transfers.contains(where: { !$0.hasEnded }) {
                try startDue()
                try connection.wait { lookAfter() }
                for transfer in transfers { transfer.conclude() }
                if batch.endsEarly, let failure = transfers.compactMap(\.failure).first {
                    for transfer in transfers where !transfer.hasEnded { transfer.abandon() }
                    return failure
                }
            }
            let isStored = try checkKeyring()
            return transfers.compactMap(\.failure).last ?? (isStored ? .success : ExitCode(ExitStatus.notInKeyring))
        } catch {
            StandardError.clear()
            for transfer in transfers { transfer.abandon() }
            throw error
        }
    }

    /// Prints a message for each login that should be in the keyring and is not. Returns whether there is none.
    private func checkKeyring() throws(ClientFailure) -> Bool {
        var checked: [KeyringLogin] = []
        var isStored = true
        for login in transfers.flatMap(\.loginsForKeyring) where !checked.contains(where: login.isSame) {
            checked.append(login)
            guard let problem = try login.problem(connection) else { continue }
            printError(problem)
            isStored = false
        }
        return isStored
    }

    /// The methods whose challenges this command receives if it has no terminal, only to report them: those of logins,
    /// and with `-k` of server certificates. All other challenges go directly to an agent.
    private var methodsWithoutTerminal: JSON {
        let isInsecure = transfers.contains { $0.questions.isInsecure }
        return .array(
            AuthenticationMethod.allCases
                .filter { $0 != .clientCertificate && ($0 != .serverTrust || isInsecure) }
                .map { .string($0.rawValue) })
    }

    /// Updates the progress display. Returns whether the caller has to stop waiting.
    private func lookAfter() -> Bool {
        let now = seconds
        let isDue = transfers.contains { $0.isDue } && running < batch.maxConcurrent
        if let display {
            for transfer in transfers { transfer.updateProgress(at: now) }
            display.draw(transfers.filter(\.isVisible).map(\.progress), now: now)
        }
        return isDue || transfers.contains { $0.attempt?.isOver ?? false }
            || running == 0 && transfers.allSatisfy(\.hasEnded)
    }

    private var running: Int { transfers.count { $0.attempt != nil } }
    private var seconds: Double { (ContinuousClock.now - began).milliseconds / 1000 }

    private var maxWait: Duration? {
        let due = running < batch.maxConcurrent ? transfers.compactMap(\.timeToStart).min() : nil
        let next: Duration? = display == nil ? nil : .milliseconds(100)
        return [due.map { max($0, .milliseconds(1)) }, next].compactMap(\.self).min()
    }

    /// Starts the transfers that are due, in the order of the command. With `maxConcurrent` 1, a transfer that waits for a retry
    /// delays the next ones.
    private func startDue() throws(ClientFailure) {
        for transfer in transfers where running < batch.maxConcurrent && !transfer.hasEnded && transfer.attempt == nil {
            if transfer.isDue { try transfer.begin() } else if batch.maxConcurrent == 1 { return }
        }
    }

    // MARK: Notifications and requests from the broker

    private func transfer(_ params: JSON?) -> FetchTransfer? {
        guard let id = params?["fetchId"]?.string else { return nil }
        return transfers.first { $0.attempt?.fetchID == id }
    }

    private func receive(_ method: String, _ params: JSON?) {
        if batch.isVerbose { Verbose.show(method, params) }
        if method == BrokerMethodName.fetchWaiting.rawValue, let params, !isAsking {
            // Several fetches may wait for the same reason, which is shown once.
            let text = WaitNotice.text(params, isVerbose: batch.isVerbose)
            if let text, text != lastWait { StandardError.write(line: "* \(text)") }
            lastWait = text ?? lastWait
        }
        if let params { transfer(params)?.receive(method, params) }
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
