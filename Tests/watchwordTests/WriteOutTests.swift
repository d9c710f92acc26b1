import ArgumentParser
import Foundation
import JSONText
import Testing
import WatchwordProtocol

@testable import watchword

@Suite struct WriteOutTests {
    private func facts(code: Int32 = 0) -> WriteOutFacts {
        var item = FetchItem(params: FetchRunParams(url: "http://h.example/a"), name: "a")
        item.number = 3
        var facts = WriteOutFacts(item: item)
        facts.head = ReportedHead([
            "status": 200, "httpVersion": "2",
            "headers": .array([.array(["Content-Type", "text/csv"]), .array(["X-A", "b"]), .array(["x-a", "c"])]),
        ])
        facts.result = [
            "url": "https://h.example/b", "timingsMs": ["total": .integer(1234)],
            "auth": ["user": "bob", "source": "session"],
        ]
        facts.receivedBytes = 12
        (facts.code, facts.errorText) = (ExitCode(code), "broken")
        return facts
    }

    @Test(arguments: [
        ("%{http_code}|%{response_code}", "200|200"), ("%{size_download} %{time_total}", "12 1.234000"),
        ("%{url_effective} %{url}", "https://h.example/b http://h.example/a"), ("%{scheme} %{method}", "HTTPS GET"),
        ("%{content_type} %{http_version}", "text/csv 2"), ("%{exitcode}%{errormsg}", "0"),
        ("%{watchword_user} %{watchword_source}", "bob session"), ("a\\n\\t\\r\\\\b", "a\n\t\r\\\\b"),
        ("100%%", "100%"),
        ("%x \\x %{open", "%x \\x %{open"), ("", ""), ("%{urlnum} %{num_headers}", "3 3"),
        ("%header{x-A}%header{none}", "b"), ("a%{onerror}b", "a"), ("%{nosuch}", ""), ("a%{stderr}b%{stdout}c", "ac"),
        ("%{header_json}", "{\"content-type\":[\"text/csv\"],\n\"x-a\":[\"b\",\"c\"]\n}"),
        ("%{local_ip}%{local_port}", "0"),
    ])
    func theFormatIsCurls(format: String, text: String) { #expect(WriteOut(format).text(facts()) == text) }

    @Test func failuresAreReported() {
        #expect(WriteOut("a%{onerror}b%{exitcode} %{errormsg}").text(facts(code: 22)) == "ab22 broken")
        let texts = WriteOut("a%{stderr}b%{nosuch}").texts(facts()).filter { $0.stream == .error }.map(\.text)
        #expect(texts == ["b", "watchword: unknown --write-out variable: 'nosuch'\n"])
    }

    @Test func lineEndsOfAFormatFileAreDropped() throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("watchword-\(UUID().uuidString)")
        try Data("a\nb\r\nc\rd\u{0B}\u{0C}\u{85}\u{2028}\n".utf8).write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        #expect(try WriteOut(argument: "@\(file.path)").text(facts()) == "abcd\u{0B}\u{0C}\u{85}\u{2028}")
    }

    @Test func withoutAResponseTheValuesAreZero() {
        let facts = WriteOutFacts(
            item: FetchItem(params: FetchRunParams(url: "http://h"), name: "h"), code: ExitCode(7))
        #expect(WriteOut("%{http_code} %{exitcode} %{time_total} %{json}").text(facts) == "000 7 0.000000 {}")
    }

    @Test(arguments: [
        ("http://o/x", "http://o/x"), ("//o/x", "https://o/x"), ("/x?y", "https://h:1/x?y"), ("x", "https://h:1/a/x"),
        ("?x", "https://h:1/a/b?x"),
    ])
    func redirectsAreResolved(reference: String, url: String) {
        #expect(URLText.resolved(reference, from: "https://h:1/a/b?c/d") == url)
    }

    @Test func theLogDistinguishesTheFinalResponseFromARedirect() {
        var log = ExchangeLog()
        let response: (Int) -> JSON = { ["status": .integer($0), "httpVersion": "1.1", "headers": []] }
        let request: JSON = ["method": "GET", "url": "http://h/b"]
        #expect(log.record("fetch/request", ["method": "POST", "url": "http://h/a"]) == nil)
        #expect(log.record("fetch/response", response(302)) == nil)
        #expect(log.record("fetch/request", request)?.status == 302)
        #expect(log.record("fetch/response", response(401)) == nil)
        #expect(log.record("fetch/request", request) == nil, "a challenge that is answered")
        #expect(log.record("fetch/response", response(200)) == nil)
        #expect(log.method == "GET" && log.redirects == 1 && log.headerBytes == 3 * "HTTP/1.1 200 \r\n\r\n".utf8.count)
    }
}

extension WriteOut {
    /// Returns the text for standard output.
    fileprivate func text(_ facts: WriteOutFacts) -> String {
        texts(facts).filter { $0.stream == .output }.map(\.text).joined()
    }
}
