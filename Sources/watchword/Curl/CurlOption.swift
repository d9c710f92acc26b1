/// An option of curl 7.88, and how `watchword fetch` treats it. Command lines are parsed with the list of all options.
struct CurlOption: Equatable {
    enum Verdict: Equatable {
        /// Supported with curl's meaning.
        case same
        /// Supported with a difference, which watchword-curl(7) describes.
        case different
        /// Ignored, with a note, because the option would change neither the result nor its security.
        case ignored(reason: String)
        case refused(reason: String)
    }

    /// The name without dashes.
    let long: String
    let short: Character?
    let takesValue: Bool
    let verdict: Verdict

    init(_ long: String, _ short: Character?, takesValue: Bool, _ verdict: Verdict) {
        (self.long, self.short, self.takesValue, self.verdict) = (long, short, takesValue, verdict)
    }

    /// The option as written in a command, such as `-d, --data`.
    var name: String { short.map { "-\($0), --\(long)" } ?? "--\(long)" }

    static let all: [CurlOption] =
        same + different + ignored.flatMap { list($0.options, .ignored(reason: $0.reason)) }
        + refused.flatMap { list($0.options, .refused(reason: $0.reason)) }

    private static let byLong = Dictionary(all.map { ($0.long, $0) }, uniquingKeysWith: { first, _ in first })
    private static let byShort = Dictionary(
        all.compactMap { option in option.short.map { ($0, option) } }, uniquingKeysWith: { first, _ in first })

    static func named(long: String) -> CurlOption? { byLong[long] }
    static func named(short: Character) -> CurlOption? { byShort[short] }

    /// Returns the option written as `--name` or `-n`.
    static func named(_ text: String) -> CurlOption? {
        if text.hasPrefix("--") { return byLong[String(text.dropFirst(2))] }
        return text.count == 2 && text.hasPrefix("-") ? text.last.flatMap { byShort[$0] } : nil
    }

    /// Parses words separated by blanks: `long` or `long/s`, with a final `=` for an option that takes a value.
    static func list(_ words: String, _ verdict: Verdict) -> [CurlOption] {
        words.split(separator: " ").map { word in
            let takesValue = word.hasSuffix("=")
            let parts = (takesValue ? word.dropLast() : word).split(separator: "/")
            return CurlOption(
                String(parts[0]), parts.count > 1 ? parts[1].first : nil, takesValue: takesValue, verdict)
        }
    }
}
