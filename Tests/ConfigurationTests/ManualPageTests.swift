import Glibc
import Testing
import WatchwordProtocol

@testable import Configuration

/// The manual page watchword-config(5) describes the options as the parser reads them.
@Suite struct ManualPageTests {
    private static let path =
        "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/contrib/man/watchword-config.5"

    /// The page in lines, with the characters that roff escapes.
    private func lines() throws -> [String] {
        let file = try #require(fopen(Self.path, "r"))
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&buffer, 1, buffer.count, file)
        var text = String(decoding: buffer[..<count], as: UTF8.self)
        for (escape, character) in [("\\-", "-"), ("\\(dq", "\""), ("\\(aq", "'"), ("\\&", ""), ("\\e", "\\")] {
            text = text.replacing(escape, with: character)
        }
        return text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// Checks that the page describes these options of a table, in this order and no others.
    private func check<Target>(_ options: [TableOption<Target>], of table: String) throws {
        let section = try lines().drop { $0 != ".SH [\(table)]" }.dropFirst().prefix { !$0.hasPrefix(".SH ") }
        let entries = section.split(separator: ".TP").map(Array.init).filter { $0.first?.hasPrefix(".B ") == true }
        #expect(entries.map { $0[0] } == options.map { ".B \($0.name)" })
        for (entry, option) in zip(entries, options) {
            let end = try #require(entry.firstIndex(of: ".br"))
            #expect(end > 1 && entry[end - 1].hasSuffix("."), "\(option.key) has no description")
            let known = option.defaultText.map { "Default: \($0)." } ?? "By default the option is not set."
            #expect(entry[(end + 1)...].joined(separator: " ") == "Value: \(option.type.text). \(known)")
        }
    }

    @Test(arguments: Settings.tables) func describesTheOptionsOf(table: String) throws {
        try check(Settings.options.filter { $0.table == table }, of: table)
    }

    @Test func describesTheOptionsOfOAuth() throws { try check(OAuthDraft.options, of: OAuthTables.header) }

    @Test func hasTheTablesInTheirOrder() throws {
        let sections = try lines().filter { $0.hasPrefix(".SH [") }
        #expect(sections == (Settings.tables + [OAuthTables.header]).map { ".SH [\($0)]" })
    }

    @Test func statesVersionAndLimit() throws {
        let lines = try lines()
        #expect(lines[1] == ".TH WATCHWORD-CONFIG 5 \(WatchwordVersion.date) watchword \"File Formats\"")
        #expect(lines.joined(separator: " ").contains(" at most \(SettingsFile.largestSize) bytes long."))
    }

    @Test func itsExampleIsAFileWithTheDefaults() throws {
        let lines = try lines()
        let (start, end) = (try #require(lines.firstIndex(of: ".EX")), try #require(lines.firstIndex(of: ".EE")))
        let example = lines[(start + 1)..<end]
        #expect(settings(example.joined(separator: "\n")) == Settings())
        let options = Settings.tables.flatMap { table in
            ["[\(table)]"]
                + Settings.options.filter { $0.table == table }.map { option in
                    option.defaultText.map { "\(option.name) = \($0)" } ?? "# \(option.name) = \(option.type.example)"
                } + [""]
        }
        #expect(Array(example.prefix(options.count)) == options)
        let oauth = example.dropFirst(options.count)
        #expect(oauth.first == "# [oauth.\"https://api.example/v1\"]")
        #expect(oauth.dropFirst().map { $0.prefix { $0 != "=" } } == OAuthDraft.options.map { "# \($0.name) " })
    }
}
