import CPlatform
import Glibc
import WatchwordClient
import WatchwordProtocol

/// The controlling terminal (/dev/tty), independent of standard input and output.
struct Terminal: ~Copyable {
    /// The result of reading a line.
    enum Line {
        case text(Secret)
        /// Ctrl-D on an empty line.
        case end
        /// Reading was aborted: the user has interrupted it, or the question was withdrawn.
        case interrupted, withdrawn
    }

    private static let longestLine = Limits.credentialBytes + 1

    private let descriptor: Int32

    /// Returns `nil` if the process has no controlling terminal.
    init?() {
        let descriptor = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else { return nil }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Whether this process may read from the terminal. A process in the background would be stopped (SIGTTIN).
    var isInForeground: Bool { tcgetpgrp(descriptor) == getpgrp() }

    func show(_ text: String) {
        let bytes = Array(text.utf8)
        _ = write(descriptor, bytes, bytes.count)
    }

    /// Shows `prompt` and reads one line, with or without echo. Echo is disabled before the prompt is shown, so that no input
    /// is visible or lost, and is always restored before this returns.
    func readLine(
        _ prompt: String, echo: Bool, interrupt: Int32, of question: IncomingChallenge? = nil
    ) -> Line {
        if question?.isStillOpen(isReadable: false) == false { return .withdrawn }
        var settings = termios()
        let hasSettings = tcgetattr(descriptor, &settings) == 0
        if hasSettings && !echo {
            var silent = settings
            silent.c_lflag &= ~tcflag_t(ECHO)
            silent.c_lflag |= tcflag_t(ECHONL)
            tcsetattr(descriptor, TCSAFLUSH, &silent)
        } else {
            // Discard earlier input: it may be part of a password for a question that was withdrawn.
            tcflush(descriptor, TCIFLUSH)
        }
        var isAnswered = false
        // Without an answer, discard a partly typed password, which the next reader would echo.
        defer { if hasSettings && !echo { tcsetattr(descriptor, isAnswered ? TCSADRAIN : TCSAFLUSH, &settings) } }
        show(prompt)
        while true {
            var entries = [descriptor, interrupt, question?.descriptor ?? -1].map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            // Other transfers continue meanwhile, because the broker aborts a body that its client does not read.
            let others = question?.watches ?? []
            entries += others.map(\.entry)
            if poll(&entries, UInt(entries.count), -1) < 0 && errno == EINTR { continue }
            if entries[1].revents != 0 { return .interrupted }
            if entries[2].revents != 0, question?.isStillOpen(isReadable: true) == false { return .withdrawn }
            if entries[0].revents != 0 {
                isAnswered = true
                return takeLine()
            }
            for (watch, entry) in zip(others, entries.dropFirst(3)) where entry.revents != 0 { watch.act() }
        }
    }

    /// Asks until the answer is one of `words`, or its first letter.
    /// - Returns: the word; `no` for a refusal, also by the end of the input; `nil` if the question was withdrawn or interrupted.
    func choose(
        _ question: String, among words: [String], interrupt: Int32, of challenge: IncomingChallenge
    ) -> String? {
        let prompt = "\(question) \((words + ["NO"]).joined(separator: "/")): "
        while true {
            switch readLine(prompt, echo: true, interrupt: interrupt, of: challenge) {
            case .text(let text):
                let word = text.lowercasedWord
                if ["", "n", "no"].contains(word) { return "no" }
                if let chosen = words.first(where: { $0 == word || $0.prefix(1) == word }) { return chosen }
            case .end:
                show("\n")
                return "no"
            case .withdrawn:
                show(Self.withdrawn)
                return nil
            case .interrupted:
                show("\n")
                return nil
            }
        }
    }

    static let withdrawn = "\nThe question was withdrawn: it was open for too long, or the fetch has ended.\n"

    private func takeLine() -> Line {
        var isEnd = false
        let line = Secret(capacity: Self.longestLine) { destination in
            let count = read(descriptor, destination.baseAddress, destination.count)
            guard count > 0 else {
                isEnd = true
                return 0
            }
            return destination[count - 1] == UInt8(ascii: "\n") ? count - 1 : count
        }
        return isEnd ? .end : .text(line)
    }
}

extension Secret {
    /// An answer that is no secret, such as yes or no.
    var lowercasedWord: String { withUnsafeBytes { String(decoding: $0, as: UTF8.self) }.lowercased() }
}
