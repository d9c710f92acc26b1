import Glibc
import Testing

@testable import watchword

/// watchword-curl(7): every option of curl, and what it is here.
@Suite struct CurlPageTests {
    private static let path =
        "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/contrib/man/watchword-curl.7"

    private static var page: String {
        let head = [
            ".\\\" Made from the table in Sources/watchword/Curl; a test says how to make it again.",
            ".TH WATCHWORD\\-CURL 7 \"\" watchword \"Miscellaneous\"", ".SH NAME",
            "watchword\\-curl \\- the options of curl, and what they are to watchword fetch", ".SH DESCRIPTION",
            "The options of", ".B watchword fetch",
            "have curl's names, with curl's meaning. This is what has become of those of",
            "curl 7.88. An unknown option is refused, and the nearest one named.", ".SH WITH CURL'S MEANING",
            texts { $0 == .same }.joined(separator: "; ") + ".", ".SH DIFFERENT",
        ]
        var different: [String] = []
        for option in CurlOption.all {
            guard case .different(let text) = option.verdict else { continue }
            different += [".TP", ".B \(escaped(option.name))", escaped(text)]
        }
        var absent: [String] = []
        for reason in CurlOption.Reason.allCases {
            let names = texts { $0 == .absent(reason) }.joined(separator: "; ")
            absent += [".PP", ".B \(escaped(reason.rawValue))", ".br", names + "."]
        }
        let tail = [".SH SEE ALSO", ".BR curl (1),", ".BR watchword\\-fetch (1)"]
        return (head + different + [".SH NOT HERE"] + absent + tail).joined(separator: "\n") + "\n"
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
