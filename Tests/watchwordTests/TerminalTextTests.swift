import JSONText
import Testing

@testable import watchword

/// Texts of the terminal prompts.
@Suite struct TerminalTextTests {
    @Test(arguments: [
        (600_000, 7_200_000, "until it is unused for 10 minutes or the computer sleeps, at most 2 hours"),
        (1000, 604_800_000, "until it is unused for 1 second or the computer sleeps, at most 7 days"),
        // Not shorter than the real times.
        (121_000, 5_401_000, "until it is unused for 3 minutes or the computer sleeps, at most 91 minutes"),
        (86_400_000, 3_600_000, "until the computer sleeps, at most 1 hour"),
        (60_000, 60_000, "until the computer sleeps, at most 1 minute"),
        (nil, 86_400_000, "until the computer sleeps, at most 1 day"),
        (0, 0, "until the computer sleeps, at most 0 seconds"),
    ])
    func theTimeOfTheSessionIsTrue(idle: Int?, lifetime: Int, text: String) {
        let limits: JSON = ["idleMs": idle.map { .integer($0) }, "lifetimeMs": .integer(lifetime)]
        #expect(SessionText.duration(["sessionLimits": limits]) == text)
    }

    @Test func withoutLimitsNoTimeIsStated() {
        #expect(SessionText.duration([:]) == nil)
        #expect(SessionText.duration(["sessionLimits": ["lifetimeMs": "x"]]) == nil)
    }

    @Test(
        arguments: [([], "It does not name any host."), (["DNS:a"], "It is for another host.")] as [([String], String)])
    func aCertificateForAnotherHostIsToldFromOneWithoutNames(names: [String], sentence: String) throws {
        let leaf: JSON = ["spkiSha256": "00", "subjectAltNames": .array(names.map { .string($0) })]
        let trust: JSON = ["chain": .array([leaf]), "problems": ["hostMismatch"]]
        let shown = try #require(ShownCertificate(["protectionSpace": ["serverTrust": trust]]))
        #expect(shown.text(site: "s", problem: nil).contains("  \(sentence)\n"))
    }

    @Test func localTimesWithoutMillisecondsHaveTheSameOffset() {
        let (whole, short) = (
            LocalTime.text(1_767_225_600_123), LocalTime.text(1_767_225_600_123, hasMilliseconds: false)
        )
        #expect(whole.replacing(".123", with: "") == short && short != whole)
    }

    @Test func theListOfCredentialsIsSafeForATerminal() {
        let row = CredentialsListCommand.row([
            "id": "session:1", "type": "password", "user": "a\u{202E}b", "realm": "r\u{9B}1m\u{2028}",
            "path": "/\u{9B}",
            "host": "h", "port": 80, "scheme": "http", "source": "session",
        ])
        let unsafe: Set<UInt32> = [0x9B, 0x202E, 0x2028]
        #expect(row.joined().contains("b") && !row.joined().unicodeScalars.contains { unsafe.contains($0.value) })
    }
}
