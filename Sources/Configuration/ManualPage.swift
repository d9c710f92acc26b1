internal import WatchwordProtocol

/// Generates watchword-config(5) from the table of options, so that the manual page matches the parser.
public enum ManualPage {
    /// The page for man(1), with the macros of groff_man(7).
    public static func roff() -> String {
        let lines = head + ConfigurationOption.tables.flatMap(section) + oauth + example + tail
        return lines.joined(separator: "\n") + "\n"
    }

    private static var head: [String] {
        [
            ".\\\" Made from the table of options in Sources/Configuration; a test says how to make it again.",
            ".TH WATCHWORD\\-CONFIG 5 \(WatchwordVersion.date) watchword \"File Formats\"",
            ".SH NAME",
            "watchword\\-config \\- configuration of the watchword broker",
            ".SH SYNOPSIS",
            ".I $XDG_CONFIG_HOME/watchword/config.toml",
            ".br",
            ".I \\(ti/.config/watchword/config.toml",
            ".SH DESCRIPTION",
        ]
            + paragraphs(
                "The broker watchwordd reads this file when it starts and when it receives SIGHUP. The first path is used "
                    + "if XDG_CONFIG_HOME is set, otherwise the second. If the file does not exist, all options have "
                    + "their default values.",
                "The file is written in TOML 1.0, encoded in UTF-8, and at most \(SettingsFile.largestSize) bytes long. "
                    + "Options are grouped in tables. If the file contains any error, such as an unknown option or a "
                    + "value out of range, none of it is used; all errors are reported with their line numbers.",
                "The file must be owned by the user of the broker or by root, and only the owner may have write permission.",
                "Passwords do not belong in this file.")
    }

    private static func section(of table: String) -> [String] {
        [".SH [\(escaped(table))]"] + ConfigurationOption.inTable(table).flatMap(item)
    }

    private static func item(_ option: ConfigurationOption) -> [String] {
        item(option.name, option.summary, type: option.type.text, defaultText: option.defaultText)
    }

    private static func item(_ name: String, _ summary: String, type: String, defaultText: String?) -> [String] {
        var lines = [".TP", ".B \(literal(name))"]
        lines += wrapped(escaped(summary)) + [".br"]
        lines += wrapped("Value: \(escaped(type)).")
        lines += wrapped(defaultText.map { "Default: \(literal($0))." } ?? "By default the option is not set.")
        return lines
    }

    /// The tables for each URL.
    private static var oauth: [String] {
        [".SH [\(literal(OAuthTables.header))]"]
            + paragraphs(
                "Each of these tables is for the URLs of one resource: those that have the scheme, host and port of URL, and "
                    + "whose path is that of URL or below it. If several tables match, the one with the longest path "
                    + "applies. URL begins with https://, or with http:// on this machine, and has no user, query and "
                    + "fragment. If a server there requires a Bearer token, the broker gets it as the table says.",
                "The broker contains tables for the token services of well-known container registries. A table for the same "
                    + "URL replaces one of them.")
            + OAuthOption.all.flatMap { option in
                item(option.name, option.summary, type: option.type, defaultText: option.defaultText)
            }
    }

    private static var hostPatterns: [String] {
        [".SH HOST PATTERNS"]
            + entries([
                ("example.com", "This host, but not its subdomains."),
                ("*.example.com", "All subdomains of example.com, at any depth, but not example.com itself."),
                (".example.com", "example.com and all its subdomains."),
                ("192.0.2.1", "An IPv4 address."),
                ("[2001:db8::1]", "An IPv6 address, in brackets."),
            ])
            + [".PP"]
            + paragraphs(
                "A pattern may be followed by a colon and a port; it then matches that port only, otherwise every port. "
                    + "Matching is case-insensitive. Names with non-ASCII characters must be written in Punycode. Names "
                    + "are compared as they appear in the URL, and are not resolved.")
    }

    /// All options: with their defaults, or as comments if they are not set by default.
    private static var example: [String] {
        let text = ConfigurationOption.tables.flatMap { table in
            ["[\(table)]"]
                + ConfigurationOption.inTable(table).map { option in
                    option.defaultText.map { "\(option.name) = \($0)" } ?? "# \(option.name) = \(option.type.example)"
                } + [""]
        }
        let tables = ["# [oauth.\"https://api.example/v1\"]"] + OAuthOption.all.map { "# \($0.name) = \($0.example)" }
        return hostPatterns + [".SH EXAMPLE", "All options with their defaults:", ".PP", ".EX"]
            + (text + tables).map(literal) + [".EE"]
    }

    private static let tail = [".SH SEE ALSO", ".BR watchword (1),", ".BR watchwordd (1)"]

    private static func paragraphs(_ texts: String...) -> [String] {
        Array(texts.map { wrapped(escaped($0)) }.joined(separator: [".PP"]))
    }

    private static func entries(_ entries: [(tag: String, text: String)]) -> [String] {
        entries.flatMap { [".TP", ".B \(literal($0.tag))"] + wrapped(escaped($0.text)) }
    }

    /// The maximum length of a line. mandoc(1) reports lines of more than 80 bytes.
    private static let widestLine = 78

    /// Breaks escaped text into lines, at spaces.
    public static func wrapped(_ text: String) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, last.utf8.count + 1 + word.utf8.count <= widestLine {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(asText(String(word)))
            }
        }
        return lines
    }

    /// Escapes text for roff.
    private static func escaped(_ text: String) -> String {
        asText(text.map { $0 == "\\" ? "\\e" : String($0) }.joined())
    }

    /// Prevents that a leading dot or apostrophe makes the line a roff request.
    private static func asText(_ line: String) -> String {
        line.hasPrefix(".") || line.hasPrefix("'") ? "\\&\(line)" : line
    }

    /// Escapes text that a reader may copy: hyphens and quotation marks stay ASCII.
    private static func literal(_ text: String) -> String {
        escaped(text).map { character in
            switch character {
            case "-": "\\-"
            case "\"": "\\(dq"
            case "'": "\\(aq"
            default: String(character)
            }
        }.joined()
    }
}
