internal import WatchwordProtocol

/// Reads one table of a list of tables (TOML: `[[NAME]]`). Collects all problems.
protocol ListedTableReader {
    associatedtype Setting

    /// The problems found so far.
    var problems: [SettingsProblem] { get }

    /// - Parameter line: the line of the table.
    init(line: Int)

    mutating func read(_ key: String, _ entry: TOMLEntry)

    /// Returns the setting; `nil` if there are problems.
    mutating func setting() -> Setting?
}

extension ListedTableReader {
    /// Reads the tables of a list in order. Returns those without problems, and the problems of the others.
    static func read(_ entries: [TOMLEntry], in list: String) -> (settings: [Setting], problems: [SettingsProblem]) {
        var (settings, problems): ([Setting], [SettingsProblem]) = ([], [])
        for table in entries where table.depth == 3 && table.path.hasPrefix("\(list)[") && table.path.hasSuffix("]") {
            let prefix = "\(table.path)."
            var reader = Self(line: table.line)
            for entry in entries where entry.depth == 4 && entry.path.hasPrefix(prefix) {
                reader.read(String(entry.path.dropFirst(prefix.count)), entry)
            }
            if let setting = reader.setting() { settings.append(setting) }
            problems += reader.problems
        }
        return (settings, problems)
    }
}
