import ArgumentParser
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

/// One URL of the command: its attempts, prompts, progress bar and exit code.
final class FetchTransfer {
    /// A transfer waits until it is due, runs, may wait and run again for each retry, and ends once.
    enum State {
        case waiting(until: ContinuousClock.Instant)
        case running(FetchAttempt)
        case ended(ExitCode)
    }

    let item: FetchItem
    private let connection: BrokerConnection
    private(set) var state = State.waiting(until: .now)
    private(set) var progress: ShownProgress
    private(set) var questions: TransferQuestions
    private var retries: RetryCount
    private var errorText = ""
    /// The accepted logins of the command that should be in the keyring.
    private(set) var loginsForKeyring: [KeyringLogin] = []
    /// The attempts whose request bodies the broker has requested again.
    private var bodiesToAttach: [FetchAttempt] = []

    init(_ item: FetchItem, _ question: TerminalQuestion, _ connection: BrokerConnection) {
        (self.item, self.connection) = (item, connection)
        progress = ShownProgress(name: item.name)
        questions = TransferQuestions(question)
        retries = RetryCount(item)
    }

    // MARK: Running

    /// Starts an attempt.
    /// - Throws: a failure that ends all transfers, such as an interrupt or a lost connection to the broker.
    func begin() throws(ClientFailure) {
        questions.beginAttempt(isRetry: retries.recordAttempt())
        progress.restart(.starting, expected: nil)
        do {
            let attempt = try FetchAttempt(item, on: connection)
            state = .running(attempt)
            try attempt.attach()
        } catch ClientFailure.refused(let error) {
            take(.failed(error, item, questions, retries, attempt))
        } catch let failure as ClientFailure {
            throw failure
        } catch {
            state = .ended(error as? ExitCode ?? ExitCode(ExitStatus.failedToStart))
        }
    }

    func receive(_ method: String, _ params: JSON) {
        guard let attempt, let method = BrokerMethodName(rawValue: method) else { return }
        do {
            switch method {
            case .fetchHeaders where params["url"] != nil:
                let head = ReportedHead(params)
                try attempt.receive(head, isWanted: isWanted(head))
                let offset = attempt.response.offset
                progress.restart(.receiving, bytes: offset, expected: expectedBytes(of: head, from: offset))
            case .fetchRequest, .fetchResponse: try attempt.exchanged(method.rawValue, params)
            case .fetchCompleted: attempt.complete(params)
            default: return
            }
        } catch {
            end(attempt, error as? ExitCode ?? ExitCode(ExitStatus.writeError))
        }
    }

    /// Returns the expected size of the output in bytes; `nil` for a body that is decompressed, whose final size is unknown.
    private func expectedBytes(of head: ReportedHead, from offset: Int) -> Int? {
        let isCoded = item.params.decompress && head.headers.firstValue(of: "Content-Encoding") != nil
        return isCoded ? nil : head.bodyBytes.map { $0 + offset }
    }

    private func isWanted(_ head: ReportedHead) -> Bool {
        if questions.unansweredLogin != nil && [401, 407].contains(head.status) { return false }
        return !item.discardsBody(head.status) && !item.refuses(head) && retries.pause(after: head) == nil
    }

    func updateProgress(at time: Double) {
        guard let attempt else { return }
        if let sent = attempt.sentBytes {
            if progress.state != .sending { progress.restart(.sending, expected: item.content?.sizeBytes) }
            progress.record(sent, at: time)
        } else if attempt.response.head != nil {
            progress.record(attempt.response.offset + attempt.receivedBytes, at: time)
        }
    }

    /// Returns the reply to `fetch/needBody`; `nil` if the body cannot be sent again.
    func needBody() -> JSON? {
        guard let content = item.content, content.isRepeatable, let attempt else { return nil }
        bodiesToAttach.append(attempt)
        return ["body": AttachedBody(sizeBytes: content.sizeBytes).json]
    }

    /// Sends the bodies that the broker has requested again. The broker accepts their connections only after the reply of
    /// `needBody`.
    func attachAgain() {
        for attempt in bodiesToAttach { try? attempt.attachRequest() }
        bodiesToAttach = []
    }

    // MARK: Prompts

    func canAsk(about params: JSON) -> Bool { questions.canAsk(about: params) }

    /// Returns the answer to a challenge.
    /// - Parameter announce: called with the progress before the user is asked.
    func answer(_ challenge: IncomingChallenge, announce: (ShownProgress) -> Void) -> ChallengeAnswer? {
        // A copy, because messages about this fetch are handled during the prompt, too.
        var questions = questions
        defer { self.questions = questions }
        return questions.answer(challenge) { announce(progress) }
    }

    // MARK: Ending

    /// Ends or retries the transfer if its attempt is over.
    func conclude() {
        guard let attempt, attempt.isOver else { return }
        if let problem = attempt.problem {
            attempt.cancel()
            return end(attempt, problem as? ExitCode ?? ExitCode(ExitStatus.writeError))
        }
        switch attempt.completion {
        case .failure(let error)?: take(.failed(error, item, questions, retries, attempt))
        case .success(let result)?: take(.completed(attempt, result, item, questions, retries))
        case nil: break
        }
    }

    private func take(_ outcome: AttemptOutcome) {
        switch outcome {
        case .retry(let pause, let reason): retry(after: pause, because: reason)
        case .startOver:
            attempt?.response.startOver()
            state = .waiting(until: .now)
        case .ended(let code, let text, let result):
            if let text {
                errorText = text
                printError(text)
            }
            loginsForKeyring = result.map { questions.loginsForKeyring($0, of: item) } ?? []
            end(attempt, code, result)
        }
    }

    /// Ends the transfer. Without a result, or if `-f` discards the body, the response is discarded.
    private func end(_ attempt: FetchAttempt?, _ code: ExitCode, _ result: JSON? = nil) {
        state = .ended(code)
        if let attempt, let result, !item.discardsBody(attempt.response.head?.status ?? 0) {
            do { try finish(attempt, result) } catch {
                leave(attempt)
                state = .ended(error as? ExitCode ?? ExitCode(ExitStatus.writeError))
            }
        } else if let attempt {
            leave(attempt)
        }
        item.report(attempt, result, code: failure ?? .success, errorText)
    }

    private func finish(_ attempt: FetchAttempt, _ result: JSON) throws {
        if item.printsJSON { try item.printJSON(attempt, result) }
        try attempt.response.output.finish()
        if item.setsTime { item.setTime(attempt.response.head) }
    }

    private func leave(_ attempt: FetchAttempt, isInterrupted: Bool = false) {
        if let text = attempt.response.discard(isInterrupted: isInterrupted) { printError(text) }
    }

    private func retry(after pause: Duration, because text: String) {
        if let attempt { leave(attempt) }
        retries.recordRetry()
        let seconds = Int((pause.milliseconds / 1000).rounded(.up))
        printError("\(text) (retry \(retries.count) of \(item.retry.limit) in \(seconds) s)")
        progress.restart(.waitingForRetry(seconds: seconds), expected: nil)
        state = .waiting(until: .now + pause)
    }

    /// Ends the transfer without an error message, for example after an interrupt. Sends nothing to the broker, which may not
    /// respond; the end of the connection cancels the fetch.
    func abandon() {
        guard let attempt else { return }
        leave(attempt, isInterrupted: !item.removesOnError)
        state = .ended(ExitCode(128 + SIGINT))
    }
}

extension FetchTransfer {
    var attempt: FetchAttempt? { if case .running(let attempt) = state { attempt } else { nil } }
    var hasEnded: Bool { if case .ended = state { true } else { false } }
    /// The exit code of a failed transfer; `nil` before the end and after success.
    var failure: ExitCode? { if case .ended(let code) = state, code != .success { code } else { nil } }
    /// The time until the next attempt is due; `nil` if the transfer is running or has ended.
    var timeToStart: Duration? { if case .waiting(let time) = state { time - .now } else { nil } }
    /// Whether to draw the progress bar.
    var isVisible: Bool { attempt != nil || timeToStart != nil && retries.count > 0 }
    var isDue: Bool { timeToStart.map { $0 <= .zero } ?? false }
}
