import ArgumentParser
import Glibc
import JSONText
import WatchwordProtocol

/// The effect of the options on a response.
extension FetchItem {
    /// Whether `-f` discards the body.
    func discardsBody(_ status: Int) -> Bool {
        failsOnErrors && !savesErrorBodies && !printsJSON && status >= 400
    }

    func refuses(_ head: ReportedHead) -> Bool { refusesRedirects && head.isRedirect }

    /// Sets the modification time of the file to `Last-Modified`, for `-R`.
    func setTime(_ head: ReportedHead?) {
        guard let file, let seconds = head?.headers.firstValue(of: "Last-Modified").flatMap(HTTPDate.seconds)
        else { return }
        let times = [timespec](repeating: timespec(tv_sec: seconds, tv_nsec: 0), count: 2)
        if utimensat(AT_FDCWD, file, times, 0) != 0 {
            StandardError.note("cannot set the time of \(file): \(String(cString: strerror(errno)))")
        }
    }

    /// Writes the output of `-w`. Called after all other output.
    func report(_ attempt: FetchAttempt?, _ result: JSON?, code: ExitCode, _ errorText: String) {
        guard let format = writeOut else { return }
        var facts = WriteOutFacts(item: self, head: attempt?.response.head, result: result)
        facts.receivedBytes = attempt?.receivedBytes ?? 0
        if let attempt { facts.log = attempt.log }
        (facts.code, facts.errorText) = (code, errorText)
        for (stream, text) in format.texts(facts) {
            let output: ResponseOutput = stream == .output ? .standardOutput() : .standardError()
            try? output.write(text.headerBytes)
        }
    }

    /// Prints the result as JSON, as `fetch/run` returns it. With `-o`, the body is in the file instead.
    func printJSON(_ attempt: FetchAttempt, _ result: JSON) throws {
        let body = file == nil ? BodyValue.json(attempt.response.output.memory) : nil
        let line = result.adding(["body": body]).serialized(terminator: "\n")
        try ResponseOutput.standardOutput().write(line)
    }
}
