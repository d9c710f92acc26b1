import Glibc
import Synchronization

/// The one place that writes to standard error: it knows which bars stand there, and takes them away before anything else.
enum StandardError {
    private struct Screen {
        /// What stands on the terminal now, one bar each, the cursor at the end of the last.
        var bars: [String] = []
        var isSilent = false
        var takesNotes = true
    }

    private static let screen = Mutex(Screen())

    /// `-s` without `-S`: nothing more is said.
    static func beSilent() { screen.withLock { $0.isSilent = true } }

    /// `-s`, whether or not errors are shown: no notes.
    static func beWithoutNotes() { screen.withLock { $0.takesNotes = false } }

    /// What does not keep the command from being done.
    static func note(_ text: String) {
        guard screen.withLock({ $0.takesNotes }) else { return }
        write(line: "watchword: note: \(text)")
    }

    /// - Parameter evenIfSilent: for what an option other than `-s` asks for.
    static func write(line: String, evenIfSilent: Bool = false) {
        screen.withLock { screen in
            if screen.isSilent && !evenIfSilent { return }
            put(erasing(screen.bars) + line + "\n")
            screen.bars = []
        }
    }

    /// Takes the bars away.
    static func clear() { show(bars: []) }

    /// Replaces the bars. Several need a terminal that moves its cursor up; each must fit its width.
    static func show(bars: [String]) {
        screen.withLock { screen in
            if bars == screen.bars { return }
            put(erasing(screen.bars) + bars.joined(separator: "\n"))
            screen.bars = bars
        }
    }

    private static func erasing(_ bars: [String]) -> String {
        // Blanks and no escape sequence: every terminal knows these.
        let blank = bars.map { "\r" + String(repeating: " ", count: places($0)) + "\r" }.reversed()
        return blank.joined(separator: "\u{1B}[A")
    }

    private static func places(_ text: String) -> Int { ProgressLine.terminalWidth(text) }

    private static func put(_ text: String) {
        let bytes = Array(text.utf8)
        if !bytes.isEmpty { _ = Glibc.write(STDERR_FILENO, bytes, bytes.count) }
    }
}
