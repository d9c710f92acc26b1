/// watchword-config(5), made from the table of options, so that the manual knows neither more nor less than the parser.
public enum ManualPage {
    /// The page for man(1), with the macros of groff_man(7).
    public static func roff() -> String {
        let lines = head + ConfigurationOption.tables.flatMap(section) + example + tail
        return lines.joined(separator: "\n") + "\n"
    }

    private static var head: [String] {
        [
            ".\\\" Made from the table of options in Sources/Configuration; a test says how to make it again.",
            ".TH WATCHWORD\\-CONFIG 5 \"\" watchword \"File Formats\"",
            ".SH NAME",
            "watchword\\-config \\- configuration of the watchword broker",
            ".SH SYNOPSIS",
            ".I $XDG_CONFIG_HOME/watchword/config.toml",
            ".br",
            ".I \\(ti/.config/watchword/config.toml",
            ".SH DESCRIPTION",
        ]
            + paragraphs(
                "The broker watchwordd reads this file when it starts. The first path counts where XDG_CONFIG_HOME is set, "
                    + "otherwise the second. A file that is missing is the same as an empty one: everything is at its "
                    + "default.",
                "The file is in TOML 1.0, in UTF-8, of at most \(SettingsFile.largestSize) bytes. Options stand in tables. "
                    + "With one problem anywhere in the file, such as an option that does not exist or a value out of its "
                    + "range, nothing of it is used; all problems are reported at once, with their lines.",
                "Nobody but its owner may be able to write to the file, and the owner is the user of the broker or root.",
                "No password belongs in this file.")
    }

    private static func section(of table: String) -> [String] {
        [".SH [\(escaped(table))]"]
            + ConfigurationOption.inTable(table).flatMap { option in
                [
                    ".TP", ".B \(literal(option.name))", escaped(option.summary), ".br",
                    "Value: \(escaped(option.type.text)).",
                    option.defaultText.map { "Default: \(literal($0))." } ?? "By default the option is not there.",
                ]
            }
    }

    private static var hostPatterns: [String] {
        [".SH HOST PATTERNS"]
            + entries([
                ("example.com", "This host, and none below it."),
                ("*.example.com", "Every host below example.com, at any depth, but not example.com itself."),
                (".example.com", "example.com and every host below it."),
                ("192.0.2.1", "An IPv4 address."),
                ("[2001:db8::1]", "An IPv6 address, in brackets."),
            ])
            + [".PP"]
            + paragraphs(
                "After each of them a colon and a port may stand: then only that port is meant, otherwise every port. Small "
                    + "and capital letters are the same. Names that are not in ASCII are written in punycode. Names are "
                    + "compared as they stand in the URL; no address is looked up for them.")
    }

    /// Every option once: with its default, or as a comment where only leaving it out gives the default.
    private static var example: [String] {
        let text = ConfigurationOption.tables.flatMap { table in
            ["[\(table)]"]
                + ConfigurationOption.inTable(table).map { option in
                    option.defaultText.map { "\(option.name) = \($0)" } ?? "# \(option.name) = \(option.type.example)"
                } + [""]
        }
        return hostPatterns + [".SH EXAMPLE", "Every option, at its default:", ".PP", ".EX"]
            + text.dropLast().map(literal) + [".EE"]
    }

    private static let tail = [".SH SEE ALSO", ".BR watchword (1),", ".BR watchwordd (1)"]

    private static func paragraphs(_ texts: String...) -> [String] {
        Array(texts.map { [escaped($0)] }.joined(separator: [".PP"]))
    }

    private static func entries(_ entries: [(tag: String, text: String)]) -> [String] {
        entries.flatMap { [".TP", ".B \(literal($0.tag))", escaped($0.text)] }
    }

    /// Text as it reads.
    private static func escaped(_ text: String) -> String {
        let safe = text.map { $0 == "\\" ? "\\e" : String($0) }.joined()
        // A dot or an apostrophe would make the line a request.
        return safe.hasPrefix(".") || safe.hasPrefix("'") ? "\\&\(safe)" : safe
    }

    /// Text to be copied into a file: its hyphens and quotation marks stay in ASCII.
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
