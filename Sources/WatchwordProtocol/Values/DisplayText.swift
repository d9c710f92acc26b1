/// Text from outside, for a person: nothing in it acts on a terminal, hides, or turns the direction of what stands beside it.
extension String {
    /// The text for a message, at most 80 characters and an ellipsis. Never for a host or a URL: that is `DisplayURL`.
    public var shortened: String { shortened(to: 80) }

    /// The same with another number of characters. What is too long loses its middle: the end of a path or of a name says as
    /// much as its beginning.
    public func shortened(to limit: Int) -> String {
        let count = unicodeScalars.count
        guard count > limit else { return DisplayText.escaped(unicodeScalars) }
        let end = limit / 3
        let parts = (unicodeScalars.prefix(limit - end), unicodeScalars.dropFirst(count - end))
        return DisplayText.escaped(parts.0) + "…" + DisplayText.escaped(parts.1)
    }
}

enum DisplayText {
    /// Letters of no language need more marks above each other; many of them reach into the lines above and below.
    private static let marksInARow = 3

    /// The characters that `shortened` and `DisplayURL` do not show are U+FFFD, and every blank is a space.
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
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned: "\u{FFFD}"
        case .spaceSeparator: " "
        default: blank.contains(scalar) ? "\u{FFFD}" : scalar
        }
    }

    /// Letters, symbols and marks that show as nothing.
    private static let blank: Set<Unicode.Scalar> = [
        "\u{034F}", "\u{115F}", "\u{1160}", "\u{2800}", "\u{3164}", "\u{FFA0}",
    ]
}
