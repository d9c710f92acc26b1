import Glibc
import Synchronization

/// All output to standard error. Erases the current progress bars before it writes anything else. Thread-safe.
enum StandardError {
    private struct Screen {
        /// The progress bars on the terminal, one per line. The cursor is at the end of the last one.
        var bars: [String] = []
        var isSilent = false
        var takesNotes = true
    }

    private static let screen = Mutex(Screen())

    /// Suppresses all further output: `-s` without `-S`.
    static func beSilent() { screen.withLock { $0.isSilent = true } }

    /// Suppresses notes: `-s`, with or without `-S`.
    static func beWithoutNotes() { screen.withLock { $0.takesNotes = false } }

    /// Writes a note, which does not make the command fail.
    static func note(_ text: String) {
        guard screen.withLock({ $0.takesNotes }) else { return }
        write(line: "watchword: note: \(text)")
    }

    /// - Parameter evenIfSilent: Writes the line despite `-s`, because another option requests it.
    static func write(line: String, evenIfSilent: Bool = false) {
        screen.withLock { screen in
            if screen.isSilent && !evenIfSilent { return }
            put(erasing(screen.bars) + line + "\n")
            screen.bars = []
        }
    }

    /// Erases the bars.
    static func clear() { show(bars: []) }

    /// Replaces the bars, each of which must fit into one line. More than one bar requires a terminal that can move its
    /// cursor up.
    static func show(bars: [String]) {
        screen.withLock { screen in
            if bars == screen.bars { return }
            put(erasing(screen.bars) + bars.joined(separator: "\n"))
            screen.bars = bars
        }
    }

    private static func erasing(_ bars: [String]) -> String {
        // Blanks instead of an escape sequence work on every terminal.
        let blank = bars.map { "\r" + String(repeating: " ", count: places($0)) + "\r" }.reversed()
        return blank.joined(separator: "\u{1B}[A")
    }

    private static func places(_ text: String) -> Int { ProgressLine.terminalWidth(text) }

    private static func put(_ text: String) {
        let bytes = Array(text.utf8)
        if !bytes.isEmpty { _ = Glibc.write(STDERR_FILENO, bytes, bytes.count) }
    }
}
