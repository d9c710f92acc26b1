internal import Glibc
public import WatchwordProtocol

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
            SimilarName.nearest(to: entry.path, among: tables).map { "did you mean \(header($0))?" }
            ?? "the tables are \(list(tables.map(header)))"
        return SettingsProblem(line: entry.line, key: entry.path.shortened, "unknown table; \(advice)")
    }

    private static func unknownKey(_ entry: TOMLEntry, table: String?) -> SettingsProblem {
        let advice =
            if let option = similarOption(to: entry.path) {
                "did you mean \(option.name) in [\(option.table)]?"
            } else if let table {
                "the options of [\(table)] are \(list(Settings.options.filter { $0.table == table }.map(\.name)))"
            } else {
                "options belong in the tables \(list(tables.map(header)))"
            }
        return SettingsProblem(line: entry.line, key: entry.path.shortened, "unknown option; \(advice)")
    }

    /// Returns the option most similar to a path, compared by key or, in any table, by name; `nil` if none is similar.
    private static func similarOption(to path: String) -> ConfigurationOption? {
        let name = path.split(separator: ".").last.map(String.init) ?? path
        return SimilarName.nearest(to: path, among: Settings.options) { option in
            let byName = SimilarName.distance(name, option.name).map { $0 + 1 }
            return [SimilarName.distance(path, option.key), byName].compactMap(\.self).min()
        }
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

extension SettingsFile {
    /// Loads the settings from a file, or returns all problems of the file. Returns the defaults if the file does not
    /// exist.
    ///
    /// The file must belong to this user or to root, and must not be writable by other users: it controls where passwords are
    /// sent.
    public static func load(_ path: String) -> Result<Settings, InvalidSettings> {
        func failed(_ text: String) -> Result<Settings, InvalidSettings> {
            .failure(InvalidSettings(problems: [SettingsProblem(line: nil, text)]))
        }
        do throws(CarefulFile.Failure) {
            // People keep their configurations elsewhere, and link to them. What counts is who can change the file.
            let file = try CarefulFile(path, followsLinks: true)
            let status = file.status
            if let text = fileProblem(mode: status.st_mode, owner: status.st_uid, user: geteuid(), path: path) {
                return failed(text)
            }
            return parse(try file.contents(limit: largestSize))
        } catch {
            guard case .systemCall(let number) = error else { return failed("\(path) \(error.text)") }
            // A dangling symbolic link is an error and not a missing file: its owner expects a file to be used.
            var status = stat()
            if number == ENOENT && lstat(path, &status) != 0 { return .success(Settings()) }
            return failed(
                "cannot read \(path): \(String(cString: strerror(number))); make the file readable by you, or remove it"
            )
        }
    }

    /// Why the owner or mode of the file is not acceptable; `nil` if both are.
    // guard: configuration-file
    static func fileProblem(mode: mode_t, owner: uid_t, user: uid_t, path: String) -> String? {
        if owner != user && owner != 0 {
            return "\(path) belongs to user \(owner), who could change where passwords are sent; replace it with a "
                + "file of your own"
        }
        if mode & 0o022 != 0 {
            let text = String(mode & 0o7777, radix: 8)
            return "\(path) is writable by other users (mode 0\(text)), who could change where passwords are sent; "
                + "check its contents, then run: chmod go-w '\(path)'"
        }
        return nil
    }
}

extension CarefulFile {
    /// Reads the file, up to one byte more than `limit`: what counts is not the size from fstat(2), because the file may be
    /// growing. Can block if the file system hangs.
    public borrowing func contents(limit: Int) throws(Failure) -> [UInt8] {
        var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 64 << 10))
        while bytes.count <= limit {
            let count = read(descriptor, &buffer, min(buffer.count, limit + 1 - bytes.count))
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw .systemCall(errno) }
            if count == 0 { break }
            bytes += buffer[..<count]
        }
        return bytes
    }
}
