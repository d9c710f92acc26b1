/// Makes untrusted text safe for display: without terminal controls, invisible characters, and characters that change
/// the direction of the text around them.
extension String {
    /// The text for a message, of at most 80 characters and an ellipsis. Not for hosts and URLs; use `DisplayURL`.
    public var shortened: String { shortened(to: 80) }

    /// Returns the text with at most `limit` characters and an ellipsis. A longer text loses its middle, because the end of a
    /// path or name is as informative as its beginning.
    public func shortened(to limit: Int) -> String {
        // A fast path: printable ASCII is shown as it is.
        if utf8.count <= limit, utf8.allSatisfy({ (0x20...0x7E).contains($0) }) { return self }
        let scalars = readable.unicodeScalars
        let count = scalars.count
        guard count > limit else { return DisplayText.escaped(scalars) }
        let end = limit / 3
        let parts = (scalars.prefix(limit - end), scalars.dropFirst(count - end))
        return DisplayText.escaped(parts.0) + "…" + DisplayText.escaped(parts.1)
    }
}

enum DisplayText {
    /// The limit for combining marks in a row. No language needs more, and more would overlap the lines above and below.
    private static let marksInARow = 3

    /// Returns the text for display: unsafe characters become U+FFFD, and every blank becomes a space.
    static func escaped(_ scalars: some Sequence<Unicode.Scalar>) -> String {
        var (text, marks) = (String.UnicodeScalarView(), 0)
        for scalar in scalars {
            let isMark = [.nonspacingMark, .enclosingMark].contains(scalar.properties.generalCategory)
            marks = isMark ? marks + 1 : 0
            text.append(marks > marksInARow ? "\u{FFFD}" : shown(scalar))
        }
        return String(text)
    }

    private static func shown(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.properties.generalCategory {
        // guard: error-controls-no-terminal
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: "\u{FFFD}"
        case .spaceSeparator: " "
        default: blank.contains(scalar) ? "\u{FFFD}" : scalar
        }
    }

    /// Letters, symbols and marks that are invisible.
    private static let blank: Set<Unicode.Scalar> = [
        "\u{034F}", "\u{115F}", "\u{1160}", "\u{2800}", "\u{3164}", "\u{FFA0}",
    ]
}
