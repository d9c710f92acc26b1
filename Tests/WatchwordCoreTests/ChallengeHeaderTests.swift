import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// RFC 9110 section 11; the numbers are those of the rules that the tests are about.
@Suite struct ChallengeHeaderTests {
    private func parse(_ fields: String...) -> [SchemeChallenge] { ChallengeHeader.parse(fields: fields) }

    @Test func r1NamesCompareWithoutCase() {
        let challenge = parse("bAsIc ReAlM=\"x\"")[0]
        #expect(challenge.authenticationMethod == .httpBasic)
        #expect(challenge.realm == "x")
    }

    @Test func r2RepeatedParameterMakesTheChallengeUnusableAndLeavesTheOthers() {
        let challenges = parse("Basic realm=\"a\", realm=\"b\", Basic realm=\"c\"")
        #expect(challenges.map(\.hasDuplicateParameters) == [true, false])
        #expect(AnswerableChallenge(challenges[0]) == nil)
        #expect(AnswerableChallenge(challenges[1]) == .basic(realm: "c"))
    }

    @Test func r3TokenAndQuotedStringAreTheSameValue() {
        #expect(parse("Basic realm=foo")[0].realm == parse("Basic realm=\"foo\"")[0].realm)
    }

    @Test func r4QuotedStringsHideEverythingInside() {
        let challenges = parse("Newauth realm=\"foo, Basic realm=evil\"")
        #expect(challenges.map(\.scheme) == ["Newauth"])
        #expect(challenges[0].realm == "foo, Basic realm=evil")
        #expect(parse("Basic realm=\"a\\\"b\\\\c\"")[0].realm == "a\"b\\c")
    }

    @Test(arguments: [
        "Basic realm=\"open", "Basic realm=\"open\\", "=x", "Basic realm=\"a\" charset=\"b\"",
        "Basic realm=\"a\"x", "Basic realm=\"a\", =", "Ba sic realm=\"x\"", "\"Basic\" realm=x", "Basic realm==\"x\"",
    ])
    func r4AMalformedFieldIsLeftOutWhole(field: String) {
        #expect(parse(field, "Digest realm=\"d\"").map(\.scheme) == ["Digest"])
        #expect(parse("Basic realm=\"first\", " + field).isEmpty)
    }

    @Test func r5BlanksAroundTheEqualsSignAndEmptyElementsAreAccepted() {
        let challenges = parse(", , Basic \t realm \t=\t \"x\" ,, ,Digest nonce = n ,, realm=r,")
        #expect(challenges.map(\.scheme) == ["Basic", "Digest"])
        #expect(challenges.map(\.realm) == ["x", "r"])
    }

    @Test func r6Token68AndParametersExcludeEachOther() {
        let challenges = parse("Negotiate abc+/-._~==, Basic realm=\"x\", NTLM, Foo bar=baz")
        #expect(challenges.map(\.scheme) == ["Negotiate", "Basic", "NTLM", "Foo"])
        #expect(challenges.map(\.token68) == ["abc+/-._~==", nil, nil, nil])
        #expect(challenges[3]["bar"] == "baz")
    }

    @Test func r7OneLineAndSeveralLinesAreTheSame() {
        let together = parse("Digest realm=\"a\", nonce=\"n\", qop=\"auth\", Basic realm=\"b\"")
        let apart = parse("Digest realm=\"a\", nonce=\"n\", qop=\"auth\"", "Basic realm=\"b\"")
        #expect(together == apart)
        #expect(together.map(\.raw) == ["Digest realm=\"a\", nonce=\"n\", qop=\"auth\"", "Basic realm=\"b\""])
    }

    @Test func r8UnknownSchemesAreReportedAndComeLast() {
        let offers = OfferList(parse("Foo, Bar baz, Basic realm=\"x\", Qux a=1"), allowed: nil)
        #expect(offers.offers.map(\.scheme) == ["Foo", "Bar", "Basic", "Qux"])
        #expect(offers.offers.map(\.supported) == [false, false, true, false])
        #expect(offers.answerable.map(\.scheme) == ["basic", "foo", "bar", "qux"])
    }

    @Test func r9SeveralRealmsOfOneSchemeAreAllKept() {
        #expect(parse("Basic realm=\"a\", Basic realm=\"b\"").map(\.realm) == ["a", "b"])
    }

    @Test func r17TheStrongestSchemeComesFirst() {
        let digest = "realm=\"r\", nonce=\"n\", qop=\"auth\""
        let offers = OfferList(
            parse(
                "Basic realm=\"r\", Digest \(digest), Digest \(digest), algorithm=SHA-512-256, Digest \(digest), algorithm=SHA-256"
            ), allowed: nil)
        #expect(
            offers.answerable.map { $0.digest?.algorithm.name ?? "Basic" } == [
                "SHA-512-256", "SHA-256", "MD5", "Basic",
            ])
    }

    @Test func onlyAllowedMethodsAreAnswered() {
        let challenges = parse("Digest realm=\"r\", nonce=\"n\", qop=\"auth\", Basic realm=\"r\"")
        #expect(OfferList(challenges, allowed: [.httpBasic]).answerable == [.basic(realm: "r")])
        #expect(OfferList(challenges, allowed: []).answerable.isEmpty)
        #expect(OfferList(challenges, allowed: [.httpBasic]).offers.count == 2)
    }

    @Test func b1BasicWithoutRealmIsShownAndNotAnswered() {
        let offers = OfferList(parse("Basic charset=\"UTF-8\""), allowed: nil)
        #expect(offers.offers.map(\.realm) == [nil])
        #expect(offers.answerable.isEmpty)
    }

    @Test func theBoundOfAllFieldsIsReachedAndNotPassed() {
        let field = "Basic realm=\"\""
        let filling = String(repeating: "x", count: Limits.challengeHeaderBytes - field.utf8.count)
        let fits = "Basic realm=\"\(filling)\""
        #expect(parse(fits).count == 1)
        #expect(parse(fits + " ").isEmpty)
        #expect(parse(field, fits).count == 1)
    }

    @Test func boundsNumberAndSize() {
        let many = Array(repeating: "Basic realm=\"x\"", count: Limits.challengesPerResponse + 1)
        #expect(ChallengeHeader.parse(fields: many).count == Limits.challengesPerResponse)
        let large = "Basic realm=\"\(String(repeating: "x", count: Limits.challengeHeaderBytes))\""
        #expect(parse(large, "Basic realm=\"y\"").isEmpty)
    }

    /// Whatever a server sends, the parser comes to an end and invents no scheme.
    @Test func survivesRandomFields() {
        var generator = SeededGenerator(seed: 7)
        let alphabet = Array("Basic realm=\",\\ \t=abcDigest1;".utf8)
        for _ in 0..<20_000 {
            let count = Int.random(in: 0..<40, using: &generator)
            let field = String(
                decoding: (0..<count).map { _ in alphabet.randomElement(using: &generator)! }, as: UTF8.self)
            for challenge in parse(field) { #expect(field.contains(challenge.scheme)) }
        }
    }
}

/// SplitMix64: the same sequence for the same seed.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
