import ArgumentParser
import CPlatform
import Glibc
import JSONText
import WatchwordProtocol

struct LogCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        "log", "Show the audit log.",
        """
        Reads the files that the broker writes; no broker has to be running. Times are local, and with --json in UTC. The \
        log contains no secrets, and only scheme, host and port of a URL.
        """,
        examples: "watchword log --since 2h", "watchword log --follow",
        "watchword log --json | jq 'select(.kind == \"credentialRefused\")'")

    @Flag(help: "Show new records until Ctrl-C; without --lines or --since, the last 10 records first.")
    var follow = false

    @Flag(help: "Print the records as JSON, as they were written.")
    var json = false

    @Option(help: ArgumentHelp("The number of records to start with, counted from the end.", valueName: "number"))
    var lines: Int?

    @Option(
        help: ArgumentHelp(
            """
            Start at a local time: 2026-11-21, 2026-11-21T17:20; at one with its offset: 2026-11-21T17:20:00Z; or at an \
            age: 90s, 15m, 2h, 7d.
            """, valueName: "time"))
    var since: LogStart?

    /// The interval at which new lines are read.
    private static let pauseMs: Int32 = 200
    private static let linesBeforeFollowing = 10

    func validate() throws {
        if let lines, lines < 0 { throw ValidationError("--lines must be 0 or more") }
    }

    func run() throws {
        guard let folder = LogFolder() else {
            throw refusal("no path for the log; set $HOME or $XDG_STATE_HOME to an absolute path")
        }
        let interrupt = follow ? watchword_interrupt_descriptor() : -1
        let files = folder.open()
        try show(files, limit: lines ?? (follow && since == nil ? Self.linesBeforeFollowing : nil))
        if follow { return try go(on: folder, behind: files.last, interrupt) }
        if files.isEmpty { printError("no log yet: \(folder.path)/\(StateLocation.auditFile()) does not exist") }
    }

    private func show(_ files: [LogFile], limit: Int?) throws {
        var last: [String] = []
        for file in files {
            try file.readLines { bytes in
                guard let text = text(bytes) else { return }
                guard let limit else { return try write(text) }
                last.append(text)
                // Removes many lines at once, because removing the first elements of an array moves all others.
                if last.count > 2 * limit + 1000 { last.removeFirst(last.count - limit) }
            }
        }
        for text in last.suffix(limit ?? 0) { try write(text) }
    }

    private func go(on folder: LogFolder, behind file: LogFile?, _ interrupt: Int32) throws {
        var file = file
        while true {
            var entry = pollfd(fd: interrupt, events: Int16(POLLIN), revents: 0)
            if poll(&entry, 1, Self.pauseMs) > 0 {
                let signal = watchword_read_interrupt(interrupt)
                if signal > 0 { throw ExitCode(128 + signal) }
            }
            let newer = folder.open(after: file)
            for next in [file].compactMap(\.self) + newer {
                try next.readLines { bytes in if let text = text(bytes) { try write(text) } }
                file = next
            }
        }
    }

    /// Returns the line to print; `nil` for an invalid record, such as half a line after a crash, and for one before `--since`.
    private func text(_ bytes: [UInt8]) -> String? {
        guard let event = try? JSON.parse(bytes, limits: JSONLimits(depth: 8, values: 256)), event.kind == .object
        else { return nil }
        if let since {
            guard let time = event["time"]?.string.flatMap(UTCTime.milliseconds), time >= since.milliseconds else {
                return nil
            }
        }
        return json ? event.line : LogText.line(event)
    }

    /// Writes the line immediately, without buffering.
    private func write(_ text: String) throws {
        var bytes = Array("\(text)\n".utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                // A closed pipe is not an error to report.
                if errno == EPIPE { throw ExitCode(ExitStatus.refused) }
                throw refusal("cannot write output: \(String(cString: strerror(errno)))")
            }
            bytes = bytes.dropFirst(count)
        }
    }
}
