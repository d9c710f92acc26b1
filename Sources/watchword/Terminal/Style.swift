import Glibc

/// Colours on standard output. Used only on a terminal, and not with $NO_COLOR (https://no-color.org).
enum Style: String {
    case good = "32"
    case doubtful = "33"
    case bad = "31"
    case strong = "1"

    private static let isUsed: Bool = {
        let noColor = getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
        let isDumb = getenv("TERM").map { String(cString: $0) == "dumb" } ?? true
        return !noColor && !isDumb && isatty(STDOUT_FILENO) == 1
    }()

    func callAsFunction(_ text: String) -> String { Self.isUsed ? "\u{1B}[\(rawValue)m\(text)\u{1B}[0m" : text }
}
