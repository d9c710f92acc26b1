import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The encodings that OAuth uses.
@Suite struct OAuthTextTests {
    @Test("RFC 7636 appendix B: the code challenge of a verifier")
    func theCodeChallengeOfAVerifier() {
        #expect(
            OAuthText.codeChallenge(of: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
                == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
    }

    @Test func randomTextsHave43CharactersAndDiffer() {
        let texts = (0..<100).map { _ in OAuthText.makeRandom() }
        #expect(Set(texts).count == 100)
        #expect(texts.allSatisfy { $0.utf8.count == 43 && OAuthText.decodeBase64URL($0.utf8)?.count == 32 })
    }

    @Test(arguments: [([], ""), ([0xFB], "-w"), ([0xFF, 0xFF], "__8"), ([0, 1, 2], "AAEC")] as [([UInt8], String)])
    func base64URLHasNoPadding(bytes: [UInt8], text: String) {
        #expect(OAuthText.base64URL(bytes) == text)
        #expect(OAuthText.decodeBase64URL(text.utf8) == bytes)
    }

    @Test func formsEncodeAllButUnreservedCharacters() {
        #expect(OAuthText.formEncoded("aZ09-._~ +&=%/\u{e9}\n") == "aZ09-._~%20%2B%26%3D%25%2F%C3%A9%0A")
    }

    @Test func queriesAreDecoded() {
        #expect(OAuthText.query("a=b%20c+d&e=%3D=&f&g=") == ["a": "b c d", "e": "==", "f": "", "g": ""])
        #expect(OAuthText.query("") == [:])
    }

    @Test(
        "RFC 6749 section 3.1: a parameter that occurs twice makes a query invalid",
        arguments: ["a=b&a=b", "a=b&%61=c", "a&a", "a=%", "a=%4", "a=%zz", "a=%0d", "a=%00", "a=%ff", "a=%+1"])
    func malformedQueriesAreInvalid(text: String) {
        #expect(OAuthText.query(text) == nil)
    }
}
