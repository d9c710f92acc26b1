import ArgumentParser
import CPlatform
import Glibc
import JSONText
import WatchwordProtocol

struct LogCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log", abstract: "Show who used which log-in for what.",
        discussion: """
            The broker writes it into files of yours, which are shown here; none has to run. Times are UTC. There is no secret \
            in it, and nothing of what was fetched but the server.

            Examples:
              watchword log --since 2h
              watchword log --follow
              watchword log --json | jq 'select(.kind == "credentialRefused")'
            """)

    @Flag(help: "Go on showing what happens, until Ctrl-C. Begins with the last 10 lines unless told otherwise.")
    var follow = false

    @Flag(help: "Print the lines as they were written, as JSON.")
    var json = false

    @Option(help: ArgumentHelp("Begin with so many lines from the end.", valueName: "number"))
    var lines: Int?

    @Option(
        help: ArgumentHelp(
            "Begin here: 2026-11-21, 2026-11-21T17:20 (UTC), or how long ago: 90s, 15m, 2h, 7d.", valueName: "time"))
    var since: LogStart?

    /// How often a file that grows is looked at.
    private static let pauseMs: Int32 = 200
    private static let linesBeforeFollowing = 10

    func validate() throws {
        if let lines, lines < 0 { throw ValidationError("--lines takes a number from 0 on.") }
    }

    func run() throws {
        guard let folder = LogFolder() else {
            throw refusal("There is no place for a log: set $HOME or $XDG_STATE_HOME to an absolute path.")
        }
        let interrupt = follow ? watchword_interrupt_descriptor() : -1
        let files = folder.open()
        try show(files, limit: lines ?? (follow && since == nil ? Self.linesBeforeFollowing : nil))
        if follow { return try go(on: folder, behind: files.last, interrupt) }
        if files.isEmpty { complain("Nothing is written: there is no \(folder.path)/\(StateLocation.auditFile()).") }
    }

    private func show(_ files: [LogFile], limit: Int?) throws {
        var last: [String] = []
        for file in files {
            try file.readLines { bytes in
                guard let text = text(bytes) else { return }
                guard let limit else { return try write(text) }
                last.append(text)
                // Not at each line: an array that loses its first element moves all others.
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

    /// `nil` for what is no event, such as half a line from before a crash, and for what was before `--since`.
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

    /// At once, whatever reads it.
    private func write(_ text: String) throws {
        var bytes = Array("\(text)\n".utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                // Whoever has read enough has gone without a word.
                if errno == EPIPE { throw ExitCode(ExitStatus.refused) }
                throw refusal("The output cannot be written: \(String(cString: strerror(errno))).")
            }
            bytes = bytes.dropFirst(count)
        }
    }
}
