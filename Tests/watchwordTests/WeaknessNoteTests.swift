import JSONText
import Testing

@testable import watchword

/// The terminal's message about a weak challenge (SEMANTICS rule 27).
@Suite struct WeaknessNoteTests {
    private func note(_ weak: JSON) -> String? {
        SpaceText.weaknessNote([
            "protectionSpace": ["authenticationMethod": "httpBasic", "realm": "r"],
            "offers": .array([
                ["authenticationMethod": "httpDigest", "realm": "r", "weak": .array(["noQop"])],
                ["authenticationMethod": "httpBasic", "realm": "s", "weak": .array(["noRealm"])],
                ["authenticationMethod": "httpBasic", "realm": "r", "weak": weak],
            ]),
        ])
    }

    @Test func theOfferThatIsAskedAboutCounts() {
        #expect(note(.null) == nil)
        #expect(note(.array(["noRealm"]))?.contains("no realm") == true)
        #expect(note(.array(["unquotedRealm", "noQop"]))?.contains("can be replayed") == true)
        #expect(note(.array(["unquotedRealm", "unknown"])) == nil)
    }
}
