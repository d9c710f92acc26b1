import ArgumentParser
import Glibc
import JSONText
import WatchwordProtocol

/// One URL of the command, with the options that apply to it.
struct FetchItem {
    /// The offset at which `-C` resumes.
    enum Resume: Equatable {
        case atByte(Int)
        /// `-C -`: the end of the partial file.
        case endOfPartial
    }

    /// The parameters of the fetch, without the body.
    var params: FetchRunParams
    var content: RequestContent?
    /// The output file; `nil` for standard output.
    var file: String?
    var resume: Resume?
    var createsFolders = false
    /// `--remove-on-error`: an interrupt leaves no partial file.
    var removesOnError = false
    /// The index of the URL argument from which this URL was expanded.
    var number = 0
    /// `-L --max-redirs 0`: a redirect is a failure.
    var refusesRedirects = false
    /// `-R`
    var setsTime = false
    /// `-i` and `-I`.
    var showsHeader = false
    var failsOnErrors = false
    /// `--fail-with-body`.
    var savesErrorBodies = false
    /// `-D`
    var headerFile: HeaderFile?
    var writeOut: WriteOut?
    var printsJSON = false
    var retry = RetryPolicy()
    /// The name in progress bars.
    var name: String
}

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

/// The file name that `-O` takes from a URL: the last segment of its path, not decoded, as in curl.
enum RemoteName {
    /// Returns `nil` if the segment is empty, `.` or `..`, or contains control characters.
    static func of(_ url: String) -> String? {
        let place = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
        let path = place.prefix { $0 != "?" && $0 != "#" }
        guard let slash = path.lastIndex(of: "/") else { return nil }
        let name = path[path.index(after: slash)...]
        let isSafe = !name.isEmpty && name != "." && name != ".." && !name.utf8.contains { $0 < 0x20 || $0 == 0x7F }
        return isSafe ? String(name) : nil
    }
}
