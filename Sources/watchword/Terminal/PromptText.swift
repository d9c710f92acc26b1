import WatchwordProtocol

/// The prompt of another program, safe for a terminal.
enum PromptText {
    /// The limits for the characters of a line and for the lines of the prompt; the middle of a longer text is omitted. A host
    /// with a user needs up to 300 characters.
    private static let (longestLine, mostLines) = (1000, 40)

    /// Returns the prompt for display. Its line breaks remain, because ssh, for example, puts a fingerprint on its own line.
    static func shown(_ text: String) -> String {
        let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        let shown = lines.map { String($0).shortened(to: longestLine) }
        let (first, last) = (shown.prefix(mostLines / 2), shown.dropFirst(mostLines / 2).suffix(mostLines / 2))
        let middle = shown.count > mostLines ? ["…"] : []
        return (first + middle + last).joined(separator: "\n")
    }

    /// Returns the prompt for display before a cursor.
    static func beforeCursor(_ text: String) -> String {
        if text.isEmpty { return "Password: " }
        return shown(text) + (text.hasSuffix(" ") ? "" : " ")
    }
}
