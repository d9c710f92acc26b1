import Testing

@testable import Configuration

@Suite struct SettingsFileTests {
    private static let complete = """
        # A file with everything.
        [limits]
        challenge-deadline-s = 30
        session-idle-s = 60  # a minute

        [fetch]
        allow = [
          ".example.com", # ours
          "Grüße ans Ende".x,
        ]
        """

    @Test(arguments: [
        ("[limits\nsession-idle-s = 1", 1), ("[limits]\nsession-idle-s 1", 2), ("\n\nx = \"open\n", 3),
        ("a = 1\na = 2", 2),
        ("[limits]\n[limits]", 2), ("x = ", 1), ("= 1", 1), ("a = 1 b = 2", 1), ("a = 01", 1), ("[]", 1), ("[:", 1),
        ("\n[[:", 2), ("été = 1", 1), ("\nкey = 1", 2), ("a = é", 1), ("\u{A0}a = 1", 1), ("ﺀ = 1", 1),
        ("a = \"\\q\"", 1),
        ("a = '''\n\nx", 3), ("a = [\n1,\n\n", 3), ("a = \"\"\"\\é\"\"\"", 1), ("limits = 1\n[limits]\n", 2),
        ("a = {b = 1\n}", 1), ("a.b", 1),
        ("a = 1\r", 1), ("a = \"\u{7}\"", 1), ("# \u{1B}[31m", 1), (complete, 9),
    ])
    func saysWhereTheSyntaxIsWrong(text: String, line: Int) {
        let found = problems(text)
        #expect(found.count == 1 && found.first?.line == line && found.first?.key == nil)
        #expect(found.first?.text.hasPrefix("the file is not valid TOML and is not used: ") == true)
        #expect(found.first?.text.unicodeScalars.contains { $0.value < 0x20 } == false)
    }

    @Test(arguments: [
        ("[limits]\nsession-idel-s = 1", "limits.session-idel-s", "did you mean session-idle-s in [limits]?"),
        ("[limits]\nsession_idle_s = 1", "limits.session_idle_s", "did you mean session-idle-s in [limits]?"),
        (
            "[limits]\nchallenge-deadline = 1", "limits.challenge-deadline",
            "did you mean challenge-deadline-s in [limits]?"
        ),
        ("[keyring]\nenable = true", "keyring.enable", "did you mean enabled in [keyring]?"),
        ("[fetch]\nexcept = []", "fetch.except", "did you mean except in [proxy]?"),
        ("[limits]\ncall-limit-ms = 100", "limits.call-limit-ms", "did you mean call-limit-ms in [keyring]?"),
        ("\nallow = []", "allow", "did you mean allow in [fetch]?"),
        ("[fetch]\nALLOW = []", "fetch.ALLOW", "the options of [fetch] are allow and deny"),
        ("[schemes]\nnegotiat = []", "schemes.negotiat", "did you mean negotiate in [schemes]?"),
        (
            "[schemes]\nauth-server-whitelist = []", "schemes.auth-server-whitelist",
            "the options of [schemes] are negotiate, delegate, ntlm, latin1, order and weak"
        ),
        (
            "[proxy]\npassword = 'secret'", "proxy.password",
            "the options of [proxy] are url, except, rule, pac and desktop"
        ),
        (
            "\nnosuch = 1", "nosuch",
            "options belong in the tables [limits], [keyring], [fetch], [proxy], [schemes], [tokens], [sharing], [credentials], [audit], [front], [process] and [oauth.\"URL\"]"
        ),
        ("\n[limit]\nx = 1\n[limit.y]\nz = 1", "limit", "did you mean [limits]?"),
        ("\n[fecth]\nallow = 1", "fecth", "did you mean [fetch]?"),
        (
            "\n[network]", "network",
            "the tables are [limits], [keyring], [fetch], [proxy], [schemes], [tokens], [sharing], [credentials], [audit], [front], [process] and [oauth.\"URL\"]"
        ),
        (
            "\n[\"limits.x\"]", "\"limits.x\"",
            "the tables are [limits], [keyring], [fetch], [proxy], [schemes], [tokens], [sharing], [credentials], [audit], [front], [process] and [oauth.\"URL\"]"
        ),
        ("\n[\"limits \"]", "\"limits \"", "did you mean [limits]?"),
        ("\n[Limits]", "Limits", "did you mean [limits]?"),
        ("\n\"fetch.allow\" = []", "\"fetch.allow\"", "did you mean allow in [fetch]?"),
        ("[fetch]\n\"al\\u0000\\nlow\" = []", "fetch.\"al\u{FFFD}\u{FFFD}low\"", "did you mean allow in [fetch]?"),
    ])
    func suggestsWhatMayBeMeant(text: String, key: String, advice: String) {
        let found = problems(text)
        #expect(found.map(\.line) == [2] && found.map(\.key) == [key])
        #expect(found.first?.text.hasSuffix("; \(advice)") == true)
        #expect(found.first?.text.contains("secret") == false)
    }

    @Test(arguments: ["limits = 5", "limits = []", "[[limits]]\nsession-idle-s = 1", "limits = \"x\""])
    func aTableIsATable(text: String) {
        let found = problems(text)
        #expect(found.map(\.line) == [1] && found.map(\.key) == ["limits"])
        #expect(found.first?.text.contains("write [limits] on a line of its own") == true)
    }

    @Test func settingsBelowAProblemAreNotReported() {
        #expect(problems("[fetch.allow]\nx = 1\ny.z = 2").map(\.key) == ["fetch.allow"])
        #expect(problems("[limits.nothing.at.all]\nx = 1").map(\.key) == ["limits.nothing"])
    }

    @Test func reportsEverythingInOrderOfLines() {
        let found = problems(
            """
            [sharing]
            session = 1
            [limits]
            session-idle-s = 0
            sesion-entries = 1
            challenge-deadline-s = "x"
            [fetch]
            deny = ["*"]
            allow = "example.com"
            [other]
            [keyring]
            enabled = true
            """)
        #expect(found.map(\.line) == [2, 4, 5, 6, 8, 9, 10])
        #expect(
            found.map(\.key) == [
                "sharing.session", "limits.session-idle-s", "limits.sesion-entries", "limits.challenge-deadline-s",
                "fetch.deny", "fetch.allow", "other",
            ])
        #expect(InvalidSettings(problems: found).description.split(separator: "\n").count == 7)
    }

    @Test func eachBadPatternOfAListIsAProblemInItsLine() {
        let found = problems("[fetch]\ndeny = [\n  \"good.example\",\n  \"*\",\n\n  \"a b\", \"c d\"]\n")
        #expect(found.map(\.line) == [4, 6, 6])
        #expect(found.allSatisfy { $0.key == "fetch.deny" })
    }
}
