internal import WatchwordProtocol

/// The configuration file of the broker, documented in watchword-config(5).
public enum SettingsFile {
    /// The size limit of the file, in bytes.
    public static let largestSize = TOMLDocument.largestSize

    /// Parses TOML, and returns the settings or all problems.
    public static func parse(_ bytes: [UInt8]) -> Result<Settings, InvalidSettings> {
        guard bytes.count <= largestSize else { return .failure(InvalidSettings(problems: [tooLarge])) }
        if let line = lineWithoutUTF8(bytes) {
            return .failure(InvalidSettings(problems: [SettingsProblem(line: line, notUTF8)]))
        }
        let entries: [TOMLEntry]
        do throws(TOMLDocument.SyntaxError) {
            entries = try TOMLDocument.parse(bytes)
        } catch {
            return .failure(InvalidSettings(problems: [syntaxProblem(error.message)]))
        }
        var settings = Settings()
        let problems =
            entries.flatMap { apply($0, to: &settings) } + settings.readLists(entries)
            + OAuthTables.apply(entries, to: &settings)
        return problems.isEmpty ? .success(settings) : .failure(InvalidSettings(problems: inOrder(problems)))
    }

    static let tooLarge = SettingsProblem(
        line: nil,
        "the file is larger than \(largestSize) bytes; check whether it is the right file")

    private static let notUTF8 =
        "the file is not valid TOML and is not used: this line is not valid UTF-8; save the file as UTF-8"

    /// Returns the first line that is not valid UTF-8. toml++ reads ahead, and would report another line.
    private static func lineWithoutUTF8(_ bytes: [UInt8]) -> Int? {
        do throws(UTF8.ValidationError) {
            _ = try UTF8Span(validating: bytes.span)
            return nil
        } catch {
            return 1 + bytes[..<error.byteOffsets.lowerBound].count { $0 == 0x0A }
        }
    }

    private static func syntaxProblem(_ message: TOMLText) -> SettingsProblem {
        // The parser's message may contain characters of the file, which must not reach a terminal unescaped.
        let words = message.text.split(separator: ": ").map { String($0).shortened }.joined(separator: ": ")
        return SettingsProblem(
            line: message.line,
            "the file is not valid TOML and is not used: \(words); fix this line, or an unclosed string or bracket "
                + "before it; strings need quotation marks")
    }

    /// Sorts problems by line. The order of problems in the same line does not change.
    private static func inOrder(_ problems: [SettingsProblem]) -> [SettingsProblem] {
        problems.enumerated().sorted { left, right in
            (left.element.line ?? 0, left.offset) < (right.element.line ?? 0, right.offset)
        }.map(\.element)
    }

    private static func apply(_ entry: TOMLEntry, to settings: inout Settings) -> [SettingsProblem] {
        let table = String(entry.path.prefix { $0 != "." })
        if entry.depth == 1 { return tableProblem(entry).map { [$0] } ?? [] }
        // Keys in an unknown table or below an option are not reported, because the table or option itself is. `OAuthTables` reads
        // the tables below [oauth].
        guard entry.depth == 2, Settings.tables.contains(table) else { return [] }
        guard let option = Settings.options.first(where: { $0.key == entry.path }) else {
            return [unknownKey(entry, table: table)]
        }
        return option.apply(entry.value, to: &settings).map { problem in
            SettingsProblem(line: problem.line ?? entry.line, key: option.key, problem.text)
        }
    }

    private static func tableProblem(_ entry: TOMLEntry) -> SettingsProblem? {
        let isTable = if case .table = entry.value { true } else { false }
        guard tables.contains(entry.path) else {
            return isTable ? unknownTable(entry) : unknownKey(entry, table: nil)
        }
        if isTable { return nil }
        return SettingsProblem(
            line: entry.line, key: entry.path,
            "expected a table, not a value or a list of tables; write \(header(entry.path)) on a line of its own, and its "
                + "options on the lines below")
    }

    private static func unknownTable(_ entry: TOMLEntry) -> SettingsProblem {
        let advice =
            Suggestion.name(for: entry.path, among: tables).map { "did you mean \(header($0))?" }
            ?? "the tables are \(list(tables.map(header)))"
        return SettingsProblem(line: entry.line, key: entry.path.shortened, "unknown table; \(advice)")
    }

    private static func unknownKey(_ entry: TOMLEntry, table: String?) -> SettingsProblem {
        let advice =
            if let option = Suggestion.option(for: entry.path) {
                "did you mean \(option.name) in [\(option.table)]?"
            } else if let table {
                "the options of [\(table)] are \(list(Settings.options.filter { $0.table == table }.map(\.name)))"
            } else {
                "options belong in the tables \(list(tables.map(header)))"
            }
        return SettingsProblem(line: entry.line, key: entry.path.shortened, "unknown option; \(advice)")
    }

    private static let tables = Settings.tables + [OAuthTables.name]

    /// Returns the header of a table. The options of [oauth] are in tables for each URL.
    private static func header(_ table: String) -> String {
        "[\(table == OAuthTables.name ? OAuthTables.header : table)]"
    }

    private static func list(_ names: [String]) -> String {
        guard let last = names.last, names.count > 1 else { return names.first ?? "none" }
        return "\(names.dropLast().joined(separator: ", ")) and \(last)"
    }
}
