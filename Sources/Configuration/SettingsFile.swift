internal import WatchwordProtocol

/// The configuration file of the broker. watchword-config(5) describes it for its users.
public enum SettingsFile {
    /// The largest file that is read, in bytes.
    public static let largestSize = TOMLDocument.largestSize

    /// The settings that a text in TOML gives, or everything that is wrong with it.
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
        let problems = entries.flatMap { apply($0, to: &settings) }
        return problems.isEmpty ? .success(settings) : .failure(InvalidSettings(problems: inOrder(problems)))
    }

    static let tooLarge = SettingsProblem(
        line: nil,
        "The file is larger than \(largestSize) bytes, which no configuration needs. See whether it is the right one.")

    private static let notUTF8 =
        "The file is not valid TOML, and nothing of it is used. This line holds bytes that are not UTF-8. Save the file as UTF-8."

    /// toml++ reads ahead of the line that it names.
    private static func lineWithoutUTF8(_ bytes: [UInt8]) -> Int? {
        do throws(UTF8.ValidationError) {
            _ = try UTF8Span(validating: bytes.span)
            return nil
        } catch {
            return 1 + bytes[..<error.byteOffsets.lowerBound].count { $0 == 0x0A }
        }
    }

    private static func syntaxProblem(_ message: TOMLText) -> SettingsProblem {
        // The parser's words may hold characters of the file, which are not to reach a terminal as they are.
        let words = message.text.split(separator: ": ").map { String($0).shortened }.joined(separator: ": ")
        return SettingsProblem(
            line: message.line,
            "The file is not valid TOML, and nothing of it is used. \(words). Correct this line, or what is "
                + "left open before it; strings stand in quotation marks.")
    }

    /// By line; problems of one line stay as they are.
    private static func inOrder(_ problems: [SettingsProblem]) -> [SettingsProblem] {
        problems.enumerated().sorted { left, right in
            (left.element.line ?? 0, left.offset) < (right.element.line ?? 0, right.offset)
        }.map(\.element)
    }

    private static func apply(_ entry: TOMLEntry, to settings: inout Settings) -> [SettingsProblem] {
        let table = String(entry.path.prefix { $0 != "." })
        if entry.depth == 1 { return tableProblem(entry).map { [$0] } ?? [] }
        // What stands in an unknown table, or below a key, is part of a problem that has been found already.
        guard entry.depth == 2, ConfigurationOption.tables.contains(table) else { return [] }
        guard let option = ConfigurationOption.all.first(where: { $0.key == entry.path }) else {
            return [unknownKey(entry, table: table)]
        }
        return option.apply(entry.value, to: &settings).map { objection in
            SettingsProblem(line: objection.line ?? entry.line, key: option.key, objection.text)
        }
    }

    private static func tableProblem(_ entry: TOMLEntry) -> SettingsProblem? {
        let isTable = if case .table = entry.value { true } else { false }
        guard ConfigurationOption.tables.contains(entry.path) else {
            return isTable ? unknownTable(entry) : unknownKey(entry, table: nil)
        }
        if isTable { return nil }
        return SettingsProblem(
            line: entry.line, key: entry.path,
            "A table is expected here, not a value or a list of tables. Write [\(entry.path)] in a line of its own, and its "
                + "options in the lines below.")
    }

    private static func unknownTable(_ entry: TOMLEntry) -> SettingsProblem {
        let advice =
            Suggestion.table(for: entry.path).map { "Did you mean [\($0)]?" }
            ?? "There are \(list(ConfigurationOption.tables.map { "[\($0)]" }))."
        return SettingsProblem(
            line: entry.line, key: entry.path.shortened, "There is no such table. \(advice) Correct or remove it.")
    }

    private static func unknownKey(_ entry: TOMLEntry, table: String?) -> SettingsProblem {
        let advice =
            if let option = Suggestion.option(for: entry.path) {
                "Did you mean \(option.name) in [\(option.table)]?"
            } else if let table {
                "In [\(table)] there are \(list(ConfigurationOption.inTable(table).map(\.name)))."
            } else {
                "Options stand in the tables \(list(ConfigurationOption.tables.map { "[\($0)]" }))."
            }
        return SettingsProblem(
            line: entry.line, key: entry.path.shortened, "There is no such option. \(advice) Correct or remove it.")
    }

    private static func list(_ names: [String]) -> String {
        guard let last = names.last, names.count > 1 else { return names.first ?? "none" }
        return "\(names.dropLast().joined(separator: ", ")) and \(last)"
    }
}
