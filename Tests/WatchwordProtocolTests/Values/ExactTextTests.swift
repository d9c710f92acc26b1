import Testing
import WatchwordProtocol

/// Identifying texts are compared byte by byte.
@Suite struct ExactTextTests {
    /// Pairs of texts that `String` considers equal.
    static let lookalikes: [(String, String)] = [
        ("K", "\u{212A}"), ("\u{E9}", "e\u{301}"), ("\u{C5}", "\u{212B}"), (";", "\u{37E}"), ("`", "\u{1FEF}"),
    ]

    @Test("Rule X2: canonically equivalent texts are different", arguments: lookalikes)
    func canonicallyEquivalentTextsAreDifferent(one: String, other: String) {
        #expect(one == other, "a premise of this test")
        #expect(ExactText(one) != ExactText(other))
        #expect(Set([ExactText(one), ExactText(other)]).count == 2)
        #expect(!ExactText("\(other)/x").hasPrefix(ExactText(one)))
        #expect(!ExactText("x.\(other)").hasSuffix(ExactText(one)))
    }

    @Test(arguments: lookalikes) func valuesWithCanonicallyEquivalentNamesAreDifferent(one: String, other: String) {
        let (one, other) = (ExactText(one), ExactText(other))
        let space = { (host: ExactText, realm: ExactText) in
            ProtectionSpace(scheme: "https", host: host, port: 443, realm: realm, authenticationMethod: .httpBasic)
        }
        #expect(space("h", one) != space("h", other))
        #expect(space(one, "r") != space(other, "r"))
        #expect(!SpacePattern(space("h", one)).matches(space("h", other)))
        #expect(!SpacePattern(space(one, "r")).overlaps(SpacePattern(space(other, "r"))))
        let password = Array("pw".utf8).withUnsafeBytes { Secret(copying: $0) }
        let bob = LoginCredential(user: one, password: password, domain: "D")
        #expect(!bob.isSame(as: LoginCredential(user: other, password: password, domain: "D")))
        #expect(bob != LoginCredential(user: other, password: password, domain: "D"))
        let inDomain = LoginCredential(user: "bob", password: password, domain: one)
        #expect(!inDomain.isSame(as: LoginCredential(user: "bob", password: password, domain: other)))
        #expect(Subject(.unit, one) != Subject(.unit, other))
        #expect(!Subject(.unit, one).isSame(as: Subject(.unit, other)))
    }

    @Test func equalBytesAreEqual() {
        for text in ["", "bob", "Zo\u{EB}", "\u{1F600}", "a\u{0}b"] {
            #expect(ExactText(text) == ExactText(text[...]))
            #expect(Set([ExactText(text), ExactText("\(text)")]).count == 1)
            #expect(ExactText("\(text)x").hasPrefix(ExactText(text)))
            #expect(ExactText("x\(text)").hasSuffix(ExactText(text)))
            #expect("\(ExactText(text))" == text)
        }
        #expect(ExactText("BOB\u{C9}").asciiLowercased == "bob\u{C9}")
        #expect(ExactText("ab") != "a" && ExactText("a") != "ab" && !ExactText("a").hasSuffix("aa"))
    }
}
