import Glibc
import Testing
import WatchwordProtocol

@testable import watchword

/// The manual page watchword-curl(7): every option of curl, and its meaning in `watchword fetch`.
@Suite struct CurlPageTests {
    private static let path =
        "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/") + "/contrib/man/watchword-curl.7"

    private static var page: String {
        var head = [
            ".\\\" Generated from the tables in Sources/watchword/Curl by CurlPageTests.",
            ".TH WATCHWORD\\-CURL 7 \(WatchwordVersion.date) watchword \"Miscellaneous\"", ".SH NAME",
            "watchword\\-curl \\- the options of curl in watchword fetch, and all differences", ".SH DESCRIPTION",
            "The options of", ".B watchword fetch",
        ]
        head += wrapped(
            """
            have the names and meaning that they have in curl 7.88, and its exit codes, except 120, are those of curl. This \
            page lists all differences, and the options that are ignored or refused. A test runs both programs in many \
            situations. It fails if it observes a difference that is not listed here, or does not observe one that is. \
            Entries that it cannot compare are marked in the source of this page.
            """)
        head += [".PP"]
        head += wrapped(
            """
            An unknown option is refused, with the most similar one as a suggestion. Long names of options without a value can \
            be abbreviated if they remain unambiguous;
            """)
        head += [
            ".B \\-\\-no\\-", "before a flag cancels it. A value can be joined to a long name:",
            ".BR \\-\\-name=value .", ".SH DIFFERENCES",
        ]
        let differences = CurlDifference.all.flatMap { entry($0.name, $0.text, isCompared: $0.isCompared) }
        let same = [".SH IDENTICAL"] + list { $0 == .same } + [".SH DIFFERENT"]
        let different = zip(CurlOption.different, CurlDifference.options).flatMap { option, difference in
            entry(option.name, difference.text, isCompared: difference.isCompared)
        }
        let ignored = CurlOption.ignored.flatMap { group($0.reason, .ignored(reason: $0.reason)) }
        let refused = CurlOption.refused.flatMap { group($0.reason, .refused(reason: $0.reason)) }
        let tail = [".SH SEE ALSO", ".BR curl (1),", ".BR watchword\\-fetch (1)"]
        let notes = wrapped(
            "These options have no effect. A note on standard error says so; \\-s suppresses it.")
        let parts = [
            head, differences, same, different, [".SH IGNORED"], notes, ignored, [".SH REFUSED"],
            ["With one of these options, the command exits with code 2 and sends nothing."], refused, tail,
        ]
        return parts.flatMap { $0 }.joined(separator: "\n") + "\n"
    }

    private static func entry(_ name: String, _ text: String, isCompared: Bool) -> [String] {
        (isCompared ? [] : [".\\\" not compared"]) + [".TP", ".B \(escaped(name))"] + wrapped(escaped(text))
    }

    private static func group(_ reason: String, _ verdict: CurlOption.Verdict) -> [String] {
        [".PP", ".B \(escaped(reason))", ".br"] + list { $0 == verdict }
    }

    private static func list(_ matches: (CurlOption.Verdict) -> Bool) -> [String] {
        let names = CurlOption.all.filter { matches($0.verdict) }.map { escaped($0.name) }
        return wrapped(names.joined(separator: "; ") + ".")
    }

    /// Breaks escaped text into lines at spaces. mandoc(1) reports lines of more than 80 bytes.
    private static func wrapped(_ text: String) -> [String] {
        text.split(separator: " ").reduce(into: []) { lines, word in
            if let last = lines.last, last.utf8.count + 1 + word.utf8.count <= 78 {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(word.hasPrefix(".") || word.hasPrefix("'") ? "\\&\(word)" : String(word))
            }
        }
    }

    private static func escaped(_ text: String) -> String {
        let text = text.split(separator: "\\", omittingEmptySubsequences: false).joined(separator: "\\e")
        let dashes = text.split(separator: "-", omittingEmptySubsequences: false).joined(separator: "\\-")
        return dashes.hasPrefix(".") || dashes.hasPrefix("'") ? "\\&\(dashes)" : dashes
    }

    /// To generate the page again: `WATCHWORD_WRITE_MANUAL=1 swift test --filter CurlPageTests`.
    @Test func theCommittedPageMatchesTheGeneratedOne() throws {
        if getenv("WATCHWORD_WRITE_MANUAL") != nil {
            let file = try #require(fopen(Self.path, "w"))
            #expect(fputs(Self.page, file) >= 0)
            #expect(fclose(file) == 0)
        }
        #expect(
            SmallFile.text(of: Self.path) == Self.page,
            "Generate it again: WATCHWORD_WRITE_MANUAL=1 swift test --filter CurlPageTests")
    }
}
