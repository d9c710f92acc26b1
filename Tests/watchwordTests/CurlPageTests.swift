import Glibc
import Testing

@testable import watchword

/// watchword-curl(7): every option of curl, and what it is here.
@Suite struct CurlPageTests {
    private static let path =
        "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/contrib/man/watchword-curl.7"

    private static var page: String {
        let head = [
            ".\\\" Made from the tables in Sources/watchword/Curl; a test says how to make it again.",
            ".TH WATCHWORD\\-CURL 7 \"\" watchword \"Miscellaneous\"", ".SH NAME",
            "watchword\\-curl \\- the options of curl in watchword fetch, and every difference", ".SH DESCRIPTION",
            "The options of", ".B watchword fetch",
            "have curl's names, with curl's meaning, and its exit codes are curl's. This page compares it with",
            "curl 7.88. Both programs are run in many situations by a test, which fails at a difference that is",
            "not listed here, and at one that is listed and does not occur; it cannot compare entries that are",
            "marked as such in the source of this page.",
            "An unknown option is refused, and the nearest one named. Long names can be shortened where they take",
            "no value and are not mistakable,", ".B \\-\\-no\\-", "in front of a flag takes it back, and",
            ".B \\-\\-name=value", "is one argument.", ".SH DIFFERENCES",
        ]
        let differences = CurlDifference.all.flatMap { entry($0.name, $0.text, isCompared: $0.isCompared) }
        let same = [".SH WITH CURL'S MEANING", texts { $0 == .same }.joined(separator: "; ") + ".", ".SH DIFFERENT"]
        var different: [String] = []
        for option in CurlOption.all {
            guard case .different(let text) = option.verdict else { continue }
            different += entry(option.name, text, isCompared: option.isCompared)
        }
        let ignored = CurlOption.Neglect.allCases.flatMap { group($0.rawValue, .ignored($0)) }
        let refused = CurlOption.Reason.allCases.flatMap { group($0.rawValue, .refused($0)) }
        let tail = [".SH SEE ALSO", ".BR curl (1),", ".BR watchword\\-fetch (1)"]
        let notes = ["Each is accepted, with a note on standard error that \\-s silences."]
        let parts = [
            head, differences, same, different, [".SH IGNORED"], notes, ignored, [".SH REFUSED"],
            ["Each ends with code 2, and nothing is sent."], refused, tail,
        ]
        return parts.flatMap { $0 }.joined(separator: "\n") + "\n"
    }

    private static func entry(_ name: String, _ text: String, isCompared: Bool) -> [String] {
        (isCompared ? [] : [".\\\" not compared"]) + [".TP", ".B \(escaped(name))", escaped(text)]
    }

    private static func group(_ reason: String, _ verdict: CurlOption.Verdict) -> [String] {
        [".PP", ".B \(escaped(reason))", ".br", texts { $0 == verdict }.joined(separator: "; ") + "."]
    }

    private static func texts(_ isMeant: (CurlOption.Verdict) -> Bool) -> [String] {
        CurlOption.all.filter { isMeant($0.verdict) }.map { escaped($0.name) }
    }

    private static func escaped(_ text: String) -> String {
        let text = text.split(separator: "\\", omittingEmptySubsequences: false).joined(separator: "\\e")
        let dashes = text.split(separator: "-", omittingEmptySubsequences: false).joined(separator: "\\-")
        return dashes.hasPrefix(".") || dashes.hasPrefix("'") ? "\\&\(dashes)" : dashes
    }

    /// To make the page again: `WATCHWORD_WRITE_MANUAL=1 swift test --filter CurlPageTests`.
    @Test func theCommittedPageIsTheOneThatIsMade() throws {
        if getenv("WATCHWORD_WRITE_MANUAL") != nil {
            let file = try #require(fopen(Self.path, "w"))
            #expect(fputs(Self.page, file) >= 0)
            #expect(fclose(file) == 0)
        }
        #expect(
            SmallFile.text(of: Self.path) == Self.page,
            "Make it again: WATCHWORD_WRITE_MANUAL=1 swift test --filter CurlPageTests")
    }
}
