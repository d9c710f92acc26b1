/// An option of curl 7.88, and what `watchword fetch` makes of it. watchword-curl(7) is written from this table, the command line
/// is read with it, and an error message says why an option is refused.
struct CurlOption: Equatable {
    enum Verdict: Equatable {
        /// With curl's meaning.
        case same
        case different(String)
        /// Ignored, with a note: it changes neither the result nor what is protected.
        case ignored(Neglect)
        case refused(Reason)
    }

    /// Without the two dashes.
    let long: String
    let short: Character?
    let takesValue: Bool
    let verdict: Verdict

    init(_ long: String, _ short: Character?, takesValue: Bool, _ verdict: Verdict) {
        (self.long, self.short, self.takesValue, self.verdict) = (long, short, takesValue, verdict)
    }

    /// As it is written in a command.
    var name: String { short.map { "-\($0), --\(long)" } ?? "--\(long)" }

    /// Whether the test that runs both programs sees the difference; it has no terminal and no TLS.
    var isCompared: Bool {
        !["cert", "insecure", "pinnedpubkey", "proxy", "user", "verbose"].contains(long)
    }

    static let all: [CurlOption] =
        same + different + Neglect.allCases.flatMap(ignored) + Reason.allCases.flatMap(refused)

    private static let byLong = Dictionary(all.map { ($0.long, $0) }, uniquingKeysWith: { first, _ in first })
    private static let byShort = Dictionary(
        all.compactMap { option in option.short.map { ($0, option) } }, uniquingKeysWith: { first, _ in first })

    static func named(long: String) -> CurlOption? { byLong[long] }
    static func named(short: Character) -> CurlOption? { byShort[short] }

    /// `--name` or `-n`.
    static func named(_ text: String) -> CurlOption? {
        if text.hasPrefix("--") { return byLong[String(text.dropFirst(2))] }
        return text.count == 2 && text.hasPrefix("-") ? text.last.flatMap { byShort[$0] } : nil
    }

    /// Words with blanks in between: `long` or `long/s`, with `=` at the end for an option that takes a value.
    static func list(_ words: String, _ verdict: Verdict) -> [CurlOption] {
        words.split(separator: " ").map { word in
            let takesValue = word.hasSuffix("=")
            let parts = (takesValue ? word.dropLast() : word).split(separator: "/")
            return CurlOption(
                String(parts[0]), parts.count > 1 ? parts[1].first : nil, takesValue: takesValue, verdict)
        }
    }
}
