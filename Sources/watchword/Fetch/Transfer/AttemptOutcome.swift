import ArgumentParser
import JSONText
import WatchwordClient
import WatchwordProtocol

/// How to proceed after an attempt that has ended.
enum AttemptOutcome {
    case retry(after: Duration, because: String)
    /// Fetch everything again, because the partial file belongs to another version.
    case startOver
    /// End with this exit code, error message and result. Without a result, the response is discarded.
    case ended(ExitCode, String?, JSON?)

    private static func ended(_ code: Int32, _ text: String) -> Self { .ended(ExitCode(code), text, nil) }

    static func failed(
        _ error: RPCError, _ item: FetchItem, _ questions: TransferQuestions, _ retries: RetryCount,
        _ attempt: FetchAttempt?
    ) -> Self {
        if let pause = retries.pause(after: .failure(error.kind)) { return .retry(after: pause, because: error.text) }
        if error.kind == .connectionLost, error.cause == nil, attempt?.response.head != nil {
            return .ended(ExitStatus.partialFile, error.text)
        }
        if error.kind == .serverNotTrusted, item.params.tls.pin != nil {
            return .ended(ExitStatus.pinMismatch, error.text + " (its key does not match --pinnedpubkey)")
        }
        var text = error.text
        if error.kind == .serverNotTrusted, questions.isInsecure {
            text += questions.unansweredTrust.flatMap(MissingAnswer.trust).map { "; \($0)" } ?? ""
        }
        return .ended(ExitStatus.code(for: .refused(error)), text)
    }

    static func completed(
        _ attempt: FetchAttempt, _ result: JSON, _ item: FetchItem, _ questions: TransferQuestions,
        _ retries: RetryCount
    ) -> Self {
        guard attempt.isWhole(result) else {
            let text = "the broker closed the connection before the body was complete"
            return failed(RPCError(.connectionLost, text), item, questions, retries, attempt)
        }
        let status = result["status"]?.integer ?? 0
        if let unanswered = questions.unansweredLogin, [401, 407].contains(status) {
            return .ended(ExitStatus.loginDenied, MissingAnswer.login(unanswered))
        }
        if let pause = retries.pause(after: attempt.response.head) {
            return .retry(after: pause, because: "the server returned status \(status)")
        }
        if let head = attempt.response.head, item.refuses(head) {
            let text = "the server sent a redirect, which --max-redirs 0 forbids"
            return .ended(ExitStatus.tooManyRedirects, text)
        }
        switch attempt.response.verdict {
        case .startOver: return .startOver
        case .refuse(let code, let text): return .ended(code, text)
        case .write where item.resume != nil && !attempt.reachesEnd:
            return .ended(ExitStatus.partialFile, "the server sent only part of the missing bytes")
        case .write, .isComplete: return received(result, status, item, questions)
        }
    }

    /// Treats status 401 or 407 as a failure if the command requests a login, and any error status with `-f`.
    private static func received(
        _ result: JSON, _ status: Int, _ item: FetchItem, _ questions: TransferQuestions
    ) -> Self {
        let unused = LoginDiagnostic(result, item.params)
        var text = unused.map(questions.explains) ?? false ? nil : unused?.text
        let isDenied = unused?.wasAskedFor == true
        let isError = item.failsOnErrors && !item.printsJSON && status >= 400
        if isError && !isDenied { text = text ?? "the server returned status \(status)" }
        let code = isDenied ? ExitStatus.loginDenied : isError ? ExitStatus.httpError : 0
        return .ended(ExitCode(code), text, result)
    }
}
