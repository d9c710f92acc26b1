import ArgumentParser
import Testing
import WatchwordProtocol

@testable import watchword

/// Command lines are parsed as curl does.
@Suite struct CurlArgumentsTests {
    @Test(arguments: [
        (["-sSfL", "u"], ["--silent", "--show-error", "--fail", "--location", "u"]),
        (["-so", "out", "u"], ["--silent", "--output", "out", "u"]), (["-ofile", "u"], ["--output", "file", "u"]),
        (["-r", "-101", "u"], ["--range=-101", "u"]), (["-r-101"], ["--range=-101"]),
        (["--range=-5"], ["--range=-5"]), (["--max-redirs", "-1"], ["--max-redirs=-1"]),
        (["-d", "--", "u"], ["--data=--", "u"]), (["--", "-s"], ["--", "-s"]), (["--url", "u"], ["u"]),
        (["--sil", "--incl"], ["--silent", "--include"]), (["-L", "--no-location"], []),
        (["--no-location", "-L"], ["--location"]), (["--no-progress-meter"], ["--no-progress-meter"]),
        (["--keep", "none", "--socket", "-s", "--no-start"], ["--keep", "none", "--socket", "-s", "--no-start"]),
        (["--nosuch", "-%", "-"], ["--nosuch", "-%", "-"]), (["-#"], ["--progress-bar"]),
        (["-4", "--http1.1", "-N", "--connect-timeout", "3"], ["--connect-timeout", "3"]),
        (["--mail-from", "-x", "-P", "1", "u"], ["u"]),
    ])
    func isRewrittenForTheParser(given: [String], expected: [String]) throws {
        #expect(try CurlArguments(given).rewritten == expected)
    }

    @Test(arguments: [
        (["--tls-max", "1.2"], "--tls-max is refused"), (["--interface=lo"], "--interface is refused"),
        (["-n"], "-n, --netrc is refused"), (["-sn"], "-n, --netrc"), (["-o"], "--output requires a value"),
        (["--re"], "is ambiguous"), (["--oauth2", "x"], "write --oauth2-bearer"), (["--next"], "-:, --next"),
        (["--url", "-k"], "begins with a dash"), (["--url=--output=x"], "begins with a dash"),
        (["--url", "--"], "begins with a dash"), (["--json", "{}", "u"], "curl's --json DATA"),
        (["--json=[1]", "u"], "curl's --json DATA"), (["--js", "@f"], "curl's --json DATA"),
    ])
    func isRefused(given: [String], words: String) {
        let refusal = #expect(throws: CurlArguments.Refusal.self) { try CurlArguments(given) }
        #expect(refusal?.text.contains(words) == true, "\(refusal?.text ?? "")")
    }

    @Test(arguments: [
        ("{https://a.example,https://b.example}/x", false), ("https://{a,b}.example/", false),
        ("{http,https}://h/", false), ("https://h:80[80-81]", false), ("https://[::1]/{a,b}", true),
        ("https://[::1]:[1-2]/", false), ("https://h/[1-2]", true), ("https://h?{a,b}", true),
    ])
    func aUserIsForOneServer(given: String, isClear: Bool) {
        #expect(FetchTarget.isClear(given, hasUser: true) == isClear && FetchTarget.isClear(given, hasUser: false))
    }

    @Test func aUserInTheURLIsFound() {
        let urls = ["https://bob:pw@h/", "https://h/@", "https://h?a@b"]
        let found = urls.map { FetchTarget(url: $0, given: "", argument: 0, repetition: 0).holdsUser }
        #expect(found == [true, false, false])
    }

    @Test func ignoredOptionsAreReportedOnce() throws {
        let notes = try CurlArguments(["-4N", "--tlsv1.2", "-q", "-s"]).notes
        #expect(notes.count == 3 && notes[0].hasPrefix("-4, --ipv4 is ignored. The broker"))
    }
}

@Suite struct URLGlobTests {
    @Test(arguments: [
        ("http://h/a", ["http://h/a"]), ("h/{a,b,}", ["h/a", "h/b", "h/"]), ("h/[1-3]", ["h/1", "h/2", "h/3"]),
        ("h/[08-10]", ["h/08", "h/09", "h/10"]), ("h/[a-e:2]", ["h/a", "h/c", "h/e"]),
        ("h/{a,b}[1-2]", ["h/a1", "h/a2", "h/b1", "h/b2"]),
        ("http://[::1]:80/[1-2]", ["http://[::1]:80/1", "http://[::1]:80/2"]),
        ("h/\\{a,b\\}", ["h/{a,b}"]), ("h/[]", ["h/[]"]), ("h/[1-3:2]", ["h/1", "h/3"]), ("h/[5-5]", ["h/5"]),
        ("h/[a-a:1]", ["h/a"]), ("h/[A-C:2]", ["h/A", "h/C"]),
    ])
    func globsExpand(pattern: String, urls: [String]) throws {
        #expect(try URLGlob(pattern).matches.map(\.url) == urls)
    }

    @Test(arguments: [
        "h/{a", "h/[1-3", "h/[3-1]", "h/{}", "h/a}", "h/[a-1]", "h/[1-2:0]", "h/[1-]", "h/[x]", "h/{a{b}}",
        "h/[0-99999][0-99]", "h/[0-9999999]", "h/[A-z]", "h/[a-c:3]", "h/[a-c:500]", "h/[1-3:3]", "h/[a-a:2]",
        "h/[5-5:2]",
    ])
    func invalidGlobsAreRefused(pattern: String) { #expect(throws: URLGlob.Problem.self) { try URLGlob(pattern) } }

    @Test func problemsNameTheRange() {
        let letters = #expect(throws: URLGlob.Problem.self) { try URLGlob("h/[A-z]") }
        #expect(letters?.text == "range [A-z] is longer than the alphabet; use [a-z] or [A-Z], or -g")
        let step = #expect(throws: URLGlob.Problem.self) { try URLGlob("h/[1-3:9]") }
        #expect(step?.text == "the step of [1-3:9] is larger than the range; use a smaller one, or -g")
    }

    @Test(arguments: [("out#1-#2", "outa-1"), ("#3#", "#3#"), ("x#0", "x#0"), ("#1#1", "aa")])
    func namesFiles(name: String, file: String) { #expect(URLGlob.fileName(name, ["a", "1"]) == file) }
}

@Suite struct PlaceOptionsTests {
    @Test(
        arguments: [
            (nil, ["http", "https"]), ("=https", ["https"]), ("-all,https", ["https"]), ("-http", ["https"]),
            ("=ftp", []), ("https", ["http", "https"]), ("=all", ["http", "https"]), ("+http", ["http", "https"]),
        ] as [(String?, Set<String>)])
    func schemesAreNamedAsWithCurl(text: String?, schemes: Set<String>) {
        #expect(PlaceOptions.schemes(text) == schemes)
    }
}

@Suite struct HeaderArgumentTests {
    @Test func fieldsWithoutAValueAndNone() throws {
        let fields = try HeaderArgument.fields(["A: b", "C;", "Accept:", "x-none: ", "D:e"])
        #expect(fields.sent.map { "\($0.name)=\($0.value)" } == ["A=b", "C=", "D=e"])
        #expect(fields.removed == ["Accept", "x-none"] && fields.omitted == ["Accept"])
        // As in curl, only a semicolon at the end means an empty value.
        #expect(try HeaderArgument.fields(["X-Test4;  ", "E;\t", "F; g", "G ;"]).sent.map(\.name) == ["G "])
        #expect(throws: (any Error).self) { try HeaderArgument.fields(["Host:"]) }
        #expect(try HeaderArgument.fields(["accept:", "Accept: x"]).omitted == [])
    }

    @Test(arguments: [("4", "4-"), ("0-3", "0-3"), ("-101", "-101"), ("x", "x"), ("", "")])
    func rangesAreSentAsCurlDoes(given: String, sent: String) { #expect(HeaderOptions.checked(given) == sent) }

    @Test func aRangeThatIsNotSentIsNotReported() throws {
        let options = try HeaderOptions.parse(["-r", "4"])
        let headers = try HeaderArgument.fields(["Range: bytes=1-2"])
        var notes: [String] = []
        let overridden = options.added(to: headers) { notes.append($0) }
        #expect(overridden == headers && notes.isEmpty)
        let added = options.added(to: HeaderArgument.Fields()) { notes.append($0) }
        #expect(added.sent == [HeaderField("Range", "bytes=4-")] && notes.count == 1)
    }
}
