/// URLs of PAC files.
public enum ScriptURL {
    /// Whether the text is such a URL, without user and password.
    public static func isValid(_ text: String) -> Bool {
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return false }
        if text.hasPrefix("file:///") { return !text.contains("%") }
        guard let authority = authority(text) else { return false }
        return !authority.isEmpty && !authority.contains { "?#@".contains($0) }
    }

    /// Returns the URL without its query, which may contain a token.
    public static func display(_ text: String) -> String {
        DisplayURL.text(String(text.prefix { !"?#".contains($0) }))
    }

    /// Whether others can change the file on its way.
    public static func isForgeable(_ text: String) -> Bool {
        guard text.hasPrefix("http://"), let authority = authority(text) else { return false }
        let end = authority.hasPrefix("[") ? authority.firstIndex(of: "]").map { authority.index(after: $0) } : nil
        return !Loopback.isLoopback(
            ExactText(String(authority[..<(end ?? authority.firstIndex(of: ":") ?? authority.endIndex)])))
    }

    private static func authority(_ text: String) -> Substring? {
        let scheme = ["http://", "https://"].first { text.hasPrefix($0) }
        return scheme.map { text.dropFirst($0.count).prefix { $0 != "/" } }
    }
}
