import ArgumentParser
import Glibc
import Testing

@testable import watchword

@Suite struct CurlOptionTests {
    private static let known = FetchCommand.helpMessage()

    /// The options of the help page, in which a line may also name them in its text.
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

    @Test func theTableSaysWhatTheParserTakes() {
        for option in CurlOption.all where option.long != "version" {
            let isHere = if case .absent = option.verdict { false } else { true }
            #expect(isTaken(option) == isHere, "\(option.name)")
        }
    }

    @Test func whatIsMissingIsSaidWithItsReason() throws {
        for (given, name) in [("--netrc", "-n, --netrc"), ("-n", "-n, --netrc"), ("--cacert", "--cacert")] {
            let reason = try #require(MissingOption("Unknown option '\(given)'. Did you mean '--retry'?")?.reason)
            #expect(reason.hasPrefix("curl's \(name) is not here. "))
        }
        #expect(MissingOption("Unknown option '--nertc'") == nil, "the parser names the nearest")
        #expect(MissingOption("Missing expected argument '<urls> ...'") == nil)
    }
}
