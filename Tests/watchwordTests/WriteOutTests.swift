import ArgumentParser
import JSONText
import Testing
import WatchwordProtocol

@testable import watchword

@Suite struct WriteOutTests {
    private let result: JSON = [
        "url": "https://h.example/b", "timingsMs": ["total": .integer(1234)],
        "auth": ["user": "bob", "source": "session"],
    ]

    private var facts: WriteOut.Facts {
        let head = ResponseHead([
            "status": 200, "httpVersion": "2", "headers": .array([.array(["Content-Type", "text/csv"])]),
        ])
        return WriteOut.Facts(
            FetchRunParams(url: "http://h.example/a"), head, result, receivedBytes: 12, code: ExitCode(22))
    }

    @Test(arguments: [
        ("%{http_code}|%{response_code}", "200|200"), ("%{size_download} %{time_total}", "12 1.234000"),
        ("%{url_effective} %{url}", "https://h.example/b http://h.example/a"), ("%{scheme} %{method}", "HTTPS GET"),
        ("%{content_type} %{http_version}", "text/csv 2"), ("%{exitcode}", "22"),
        ("%{watchword_user} %{watchword_source}", "bob session"), ("a\\n\\t\\r\\\\b", "a\n\t\r\\b"), ("100%%", "100%"),
        ("%x \\x %{open", "%x \\x %{open"), ("", ""),
    ])
    func theFormatIsCurls(format: String, text: String) throws { #expect(try WriteOut(format).text(facts) == text) }

    @Test func nothingCameIsZeros() throws {
        let facts = WriteOut.Facts(FetchRunParams(url: "http://h"), nil, nil, receivedBytes: 0, code: ExitCode(7))
        #expect(try WriteOut("%{http_code} %{exitcode} %{time_total} %{json}").text(facts) == "000 7 0.000000 {}")
    }

    @Test func anUnknownVariableIsRefusedByName() {
        #expect(throws: ValidationError.self) { try WriteOut("%{time_connect}") }
    }
}
