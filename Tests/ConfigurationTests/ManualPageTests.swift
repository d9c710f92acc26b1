import Glibc
import Testing

@testable import Configuration

@Suite struct ManualPageTests {
    private static let path =
        "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/contrib/man/watchword-config.5"

    private func contents(_ path: String) -> String? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&buffer, 1, buffer.count, file)
        return String(decoding: buffer[..<count], as: UTF8.self)
    }

    /// To generate the page again: `WATCHWORD_WRITE_MANUAL=1 swift test --filter ManualPageTests`.
    @Test func theCommittedPageMatchesTheGeneratedOne() throws {
        let page = ManualPage.roff()
        if getenv("WATCHWORD_WRITE_MANUAL") != nil {
            let file = try #require(fopen(Self.path, "w"))
            #expect(fputs(page, file) >= 0)
            #expect(fclose(file) == 0)
        }
        #expect(
            contents(Self.path) == page, "Make it again: WATCHWORD_WRITE_MANUAL=1 swift test --filter ManualPageTests")
    }

    @Test func hasEveryOption() {
        // Without line breaks.
        let page = ManualPage.roff().split(separator: "\n").joined(separator: " ")
        for option in ConfigurationOption.all {
            let name = option.name.split(separator: "-").joined(separator: "\\-")
            #expect(page.contains(" .B \(name) \(option.summary) .br Value: \(option.type.text). "))
        }
        for option in OAuthOption.all {
            let name = option.name.split(separator: "-").joined(separator: "\\-")
            #expect(page.contains(" .B \(name) \(option.summary) .br Value: \(option.type). "))
        }
    }

    @Test func linesAreBrokenAtSpaces() {
        let long = String(repeating: "x", count: 90)
        #expect(ManualPage.wrapped("a \(long) b") == ["a", long, "b"])
        let first = String(repeating: "y", count: 76)
        #expect(ManualPage.wrapped("\(first) z .next") == ["\(first) z", "\\&.next"])
        #expect(ManualPage.wrapped("") == [])
    }

    @Test func itsExampleIsAFileWithTheDefaults() throws {
        let lines = ManualPage.roff().split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex(of: ".EX"))
        let end = try #require(lines.firstIndex(of: ".EE"))
        let example = lines[(start + 1)..<end].joined(separator: "\n")
            .replacing("\\-", with: "-").replacing("\\(dq", with: "\"")
        #expect(settings(example) == Settings())
        #expect(example.split(separator: "\n").count == ConfigurationOption.all.count + 11 + OAuthOption.all.count + 1)
    }
}
