import ArgumentParser
import Glibc
import JSONText
import WatchwordClient
import WatchwordProtocol

/// One URL of the command on its way: its attempts, its questions, its bar, and how it has ended.
final class Transfer {
    /// A transfer waits for its turn, then alternates between running and waiting for a retry, and ends once.
    enum State {
        case waiting(until: ContinuousClock.Instant)
        case running(Attempt)
        case ended(ExitCode)
    }

    let item: FetchItem
    private let question: TerminalQuestion
    private let connection: BrokerConnection
    private(set) var state = State.waiting(until: .now)
    private(set) var progress: TransferProgress
    private let start = ContinuousClock.now
    private var retries = 0
    private var errorText = ""
    private var hasStarted = false
    /// What nobody at a terminal could be asked.
    private var unanswered: JSON?
    /// A retry asks nobody again what has been answered: the space, and what was said.
    private var answers: [(space: JSON, answer: ChallengeAnswer)] = []
    private var mayRepeatAnswers = false
    private var bodiesToAttach: [Attempt] = []

    init(_ item: FetchItem, _ question: TerminalQuestion, _ connection: BrokerConnection) {
        (self.item, self.question, self.connection) = (item, question, connection)
        progress = TransferProgress(name: item.name)
    }

    var attempt: Attempt? { if case .running(let attempt) = state { attempt } else { nil } }

    // MARK: Running

    /// Throws what ends all of them: the user interrupts, or the broker is gone.
    func begin() throws(ClientFailure) {
        unanswered = nil
        mayRepeatAnswers = hasStarted
        hasStarted = true
        progress.restart(.starting, expected: nil)
        do {
            let attempt = try Attempt(item, on: connection)
            state = .running(attempt)
            try attempt.attach()
        } catch ClientFailure.refused(let error) {
            fail(error)
        } catch let failure as ClientFailure {
            throw failure
        } catch {
            state = .ended(error as? ExitCode ?? ExitCode(ExitStatus.failedToStart))
        }
    }

    func note(_ method: String, _ params: JSON) {
        guard let attempt else { return }
        switch method {
        case BrokerMethodName.fetchHeaders.rawValue where params["url"] != nil:
            do { try attempt.headerCame(params, isWanted: isWanted) } catch { end(attempt, error as? ExitCode) }
            let offset = if case .write(let offset) = attempt.verdict { offset } else { 0 }
            progress.restart(.receiving, bytes: offset, expected: expectedBytes(attempt, from: offset))
        case BrokerMethodName.fetchRequest.rawValue, BrokerMethodName.fetchResponse.rawValue:
            do { try attempt.exchanged(method, params) } catch { end(attempt, error as? ExitCode) }
        case BrokerMethodName.fetchCompleted.rawValue: attempt.completed(params)
        default: break
        }
    }

    /// Nobody knows how long a compressed body becomes.
    private func expectedBytes(_ attempt: Attempt, from offset: Int) -> Int? {
        guard let head = attempt.head, let bytes = head.bodyBytes else { return nil }
        let isCoded = item.params.decompress && head.headers.firstValue(of: "Content-Encoding") != nil
        return isCoded ? nil : bytes + offset
    }

    /// Whether the body of this response is what the command is for.
    private func isWanted(_ head: ResponseHead) -> Bool {
        if unanswered != nil && [401, 407].contains(head.status) { return false }
        if isUnwanted(head.status) || isRefused(head) { return false }
        return pause(after: outcome(head)) == nil
    }

    func updateProgress(at time: Double) {
        guard let attempt else { return }
        if let sent = attempt.sentBytes {
            if progress.state != .sending { progress.restart(.sending, expected: item.content?.sizeBytes) }
            progress.note(sent, at: time)
        } else if attempt.head != nil {
            let offset = if case .write(let offset) = attempt.verdict { offset } else { 0 }
            progress.note(offset + attempt.receivedBytes, at: time)
        }
    }

    /// Whether it waits for another try.
    var isRetrying: Bool { retries > 0 }

    /// The broker has to send the body again: the files are read from their start.
    func needBody() -> JSON? {
        guard let content = item.content, content.isRepeatable, let attempt else { return nil }
        bodiesToAttach.append(attempt)
        return ["body": Attempt.attachedBody(content)]
    }

    /// Only after the reply does the broker wait for it.
    func attachAgain() {
        for attempt in bodiesToAttach { try? attempt.attachRequest() }
        bodiesToAttach = []
    }

    // MARK: Questions

    func canAsk(about params: JSON, hasTerminal: Bool) -> Bool {
        question.canAsk(about: params, hasTerminal: hasTerminal)
    }

    /// `announce` is told before somebody is asked.
    func answer(_ challenge: IncomingChallenge, announce: (TransferProgress) -> Void) -> ChallengeAnswer? {
        let space = challenge.params["protectionSpace"] ?? [:]
        let isFirst = (challenge.params["previousFailureCount"]?.integer ?? 0) == 0
        if mayRepeatAnswers, isFirst, let known = answers.last(where: { $0.space == space }) { return known.answer }
        guard let terminal = Terminal() else {
            unanswered = challenge.params
            return .useDefault
        }
        announce(progress)
        let answer = question.ask(challenge, at: terminal)
        if let answer { answers = answers.filter { $0.space != space } + [(space, answer)] }
        return answer
    }

    // MARK: The end

    private func outcome(_ head: ResponseHead?) -> RetryPolicy.Outcome {
        let wish = HTTPDate.retryAfter(head?.headers.firstValue(of: "Retry-After"), now: time(nil))
        return .response(status: head?.status ?? 0, retryAfter: wish)
    }

    private func pause(after outcome: RetryPolicy.Outcome) -> Duration? {
        item.retry.pause(
            after: outcome, retries: retries, elapsed: .now - start, isRepeatable: item.content?.isRepeatable ?? true)
    }

    /// Looks at an attempt that is over.
    func conclude() {
        guard let attempt, attempt.isOver else { return }
        if let problem = attempt.problem {
            _ = try? connection.call(.fetchCancel, ["fetchId": .string(attempt.fetchID)])
            return end(attempt, problem as? ExitCode)
        }
        switch attempt.completion {
        case .failure(let error)?: fail(error)
        case .success(let result)? where !attempt.isWhole(result):
            fail(RPCError(.connectionLost, "The broker has closed the connection before the body was complete."))
        case .success(let result)?: succeed(attempt, result)
        case nil: break
        }
    }

    private func fail(_ error: RPCError) {
        if let pause = pause(after: .failure(error.kind)) { return retry(after: pause, because: error.text) }
        var code = ExitStatus.code(for: .refused(error))
        var text = error.text
        switch error.kind {
        case .connectionLost where attempt?.head != nil && error.cause == nil: code = ExitStatus.partialFile
        case .serverNotTrusted where item.params.tls.pin != nil:
            text += " Its key is not the one of --pinnedpubkey."
            code = ExitStatus.pinMismatch
        case .serverNotTrusted where question.isInsecure:
            text += unanswered.flatMap(MissingAnswer.trust).map { " \($0)" } ?? ""
        default: break
        }
        say(text)
        let failed = attempt
        if let failed { leave(failed) }
        state = .ended(ExitCode(code))
        report(failed, nil)
    }

    private func succeed(_ attempt: Attempt, _ result: JSON) {
        let status = result["status"]?.integer ?? 0
        if let unanswered, [401, 407].contains(status) {
            say(MissingAnswer.login(unanswered))
            return end(attempt, ExitCode(ExitStatus.loginDenied))
        }
        if let pause = pause(after: outcome(attempt.head)) {
            return retry(after: pause, because: "The server answers with status \(status).")
        }
        if let head = attempt.head, isRefused(head) {
            say("The server redirects, and no redirect is to be followed (--max-redirs 0).")
            return end(attempt, ExitCode(ExitStatus.tooManyRedirects))
        }
        switch attempt.verdict {
        case .startOver:
            try? attempt.part?.start(at: 0)
            _ = attempt.part?.leave()
            state = .waiting(until: .now)
            return
        case .refuse(let code, let text):
            say(text)
            return end(attempt, ExitCode(code))
        case .write where item.resume != nil && !attempt.reachesEnd:
            say("The server has sent a part of what is missing, and not all of it.")
            return end(attempt, ExitCode(ExitStatus.partialFile))
        case .write, .isComplete: break
        }
        end(attempt, code(of: attempt, result, status), result)
    }

    /// What a response of 401 or 407 means for a command that wanted to log in, and any error for one with `-f`.
    private func code(of attempt: Attempt, _ result: JSON, _ status: Int) -> ExitCode? {
        let unused = UnusedLogin(result, item.params)
        // Whoever was asked by this server, or this proxy, knows what it wants.
        let isKnown = unused.map { unused in question.lastLogin.map(unused.isAnswer) ?? false } ?? false
        let text = isKnown ? nil : unused?.text
        if let text { say(text) }
        let isDenied = unused?.wasAskedFor == true
        if item.failsOnErrors && !item.printsJSON && status >= 400 {
            if !isDenied && text == nil { say("The server answers with status \(status).") }
            return ExitCode(isDenied ? ExitStatus.loginDenied : ExitStatus.httpError)
        }
        return isDenied ? ExitCode(ExitStatus.loginDenied) : nil
    }

    /// With a result the response is where it belongs; without one it was not wanted.
    private func end(_ attempt: Attempt, _ code: ExitCode?, _ result: JSON? = nil) {
        let isWanted = result != nil && !isUnwanted(attempt.head?.status ?? 0)
        guard isWanted, let result else {
            leave(attempt)
            state = .ended(code ?? ExitCode(ExitStatus.writeError))
            return report(attempt, result)
        }
        defer { report(attempt, result) }
        do {
            if item.printsJSON { try printJSON(attempt, result) }
            try attempt.output?.finish()
            if item.setsTime { setTime(attempt.head) }
            state = .ended(code ?? .success)
        } catch {
            leave(attempt)
            state = .ended(error as? ExitCode ?? ExitCode(ExitStatus.writeError))
        }
    }

    /// A body that `-f` throws away.
    private func isUnwanted(_ status: Int) -> Bool {
        item.failsOnErrors && !item.keepsErrorBodies && !item.printsJSON && status >= 400
    }

    private func isRefused(_ head: ResponseHead) -> Bool { item.refusesRedirects && head.isRedirect }

    /// What went wrong, for a person and for `-w`.
    private func say(_ text: String) {
        errorText = text
        complain(text)
    }

    /// `-R`
    private func setTime(_ head: ResponseHead?) {
        guard let file = item.file,
            let seconds = head?.headers.firstValue(of: "Last-Modified").flatMap(HTTPDate.seconds)
        else { return }
        let times = [timespec](repeating: timespec(tv_sec: seconds, tv_nsec: 0), count: 2)
        if utimensat(AT_FDCWD, file, times, 0) != 0 {
            StandardError.note("cannot set the time of \(file): \(String(cString: strerror(errno)))")
        }
    }

    /// `-w`, behind everything else.
    private func report(_ attempt: Attempt?, _ result: JSON?) {
        guard let format = item.writeOut else { return }
        var facts = WriteOutFacts(item: item, head: attempt?.head, result: result)
        facts.receivedBytes = attempt?.receivedBytes ?? 0
        if let attempt { facts.log = attempt.log }
        (facts.code, facts.errorText) = (failure ?? .success, errorText)
        for (stream, text) in format.texts(facts) {
            let output: ResponseOutput = stream == .output ? .standardOutput() : .standardError()
            try? output.write(Array(text.utf8))
        }
    }

    /// As `fetch/run` would have returned it; with `-o` the body is in the file.
    private func printJSON(_ attempt: Attempt, _ result: JSON) throws {
        let body = item.file == nil ? BodyValue.json(attempt.output?.memory ?? []) : nil
        let line = result.adding(["body": body]).serialized(terminator: "\n")
        try ResponseOutput.standardOutput().write(line)
    }

    private func leave(_ attempt: Attempt) {
        guard let part = attempt.part else { return attempt.output?.discard() ?? () }
        if let text = part.leave() { complain(text) }
    }

    private func retry(after pause: Duration, because text: String) {
        if let attempt { leave(attempt) }
        retries += 1
        let seconds = Int((pause.milliseconds / 1000).rounded(.up))
        complain("\(text) Again in \(seconds) s (\(retries) of \(item.retry.limit)).")
        progress.restart(.waitingForRetry(seconds: seconds), expected: nil)
        state = .waiting(until: .now + pause)
    }

    /// The user interrupts, or the broker is gone. It hears of it by the end of the connection: one that hangs is not waited for.
    func abandon() {
        guard let attempt else { return }
        leave(attempt)
        state = .ended(ExitCode(128 + SIGINT))
    }
}

extension Transfer {
    var hasEnded: Bool { if case .ended = state { true } else { false } }
    /// `nil` while it runs, and after success.
    var failure: ExitCode? { if case .ended(let code) = state, code != .success { code } else { nil } }
    /// Until it can start; `nil` for one that runs or has ended.
    var timeToStart: Duration? { if case .waiting(let time) = state { time - .now } else { nil } }
    var isDue: Bool { timeToStart.map { $0 <= .zero } ?? false }
    /// Whether a bar is drawn for it.
    var isVisible: Bool { attempt != nil || (timeToStart != nil && isRetrying) }
}
