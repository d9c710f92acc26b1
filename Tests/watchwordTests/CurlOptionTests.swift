import ArgumentParser
import Glibc
import Testing

@testable import watchword

@Suite struct CurlOptionTests {
    private static let known = FetchSubcommand.helpMessage()

    /// Whether the help page lists the option. Only the beginning of a line counts: its text may name other options.
    private func isTaken(_ option: CurlOption) -> Bool {
        Self.known.split(separator: "\n").contains { line in
            let start = line.drop { $0 == " " }
            guard start.hasPrefix("-"), line.prefix(3).allSatisfy({ $0 == " " }) || line.hasPrefix("  -") else {
                return false
            }
            let names = start.split(whereSeparator: { " ,/<".contains($0) })
            return names.contains { $0 == "--\(option.long)" }
        }
    }

    @Test func eachIsNamedOnce() {
        let names = CurlOption.all.map(\.long)
        #expect(Set(names).count == names.count && names.count == 250)
        let letters = CurlOption.all.compactMap(\.short)
        #expect(Set(letters).count == letters.count)
    }

    @Test func theTableMatchesTheOptionsOfTheParser() {
        for option in CurlOption.all where !["version", "url"].contains(option.long) {
            let isHere =
                switch option.verdict {
                case .same, .different: true
                case .ignored, .refused: false
                }
            #expect(isTaken(option) == isHere, "\(option.name)")
        }
    }

    /// If an option with a value were parsed as one without, its value would be used as a URL.
    @Test func optionsAreKnownWithTheirValues() throws {
        #expect(try #require(CurlOption.named("--interface")).takesValue)
        #expect(try !#require(CurlOption.named("-k")).takesValue)
        #expect(CurlOption.named("-K")?.long == "config" && CurlOption.named("--nosuch") == nil)
    }

    @Test func eachDifferentOptionIsDescribed() {
        #expect(CurlDifference.options.map(\.name) == CurlOption.different.map(\.long))
    }

    @Test func differencesAreNamedOnce() {
        let names = CurlDifference.all.map(\.name)
        #expect(
            Set(names).count == names.count && names.allSatisfy { $0.allSatisfy { $0.isLowercase || "-".contains($0) } }
        )
    }
}
