import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// RFC 9110 section 11. The titles name the rules.
@Suite struct ChallengeHeaderTests {
    private func parse(_ fields: String...) -> [SchemeChallenge] { ChallengeHeader.parse(fields: fields) }

    @Test("Rule R1: names compare without regard to case")
    func namesCompareWithoutRegardToCase() {
        let challenge = parse("bAsIc ReAlM=\"x\"")[0]
        #expect(challenge.authenticationMethod == .httpBasic)
        #expect(challenge.realm == "x")
    }

    @Test("Rule R2: a repeated parameter makes one challenge unusable and leaves the others")
    func aRepeatedParameterMakesOneChallengeUnusableAndLeavesTheOthers() {
        let challenges = parse("Basic realm=\"a\", realm=\"b\", Basic realm=\"c\"")
        #expect(challenges.map(\.hasDuplicateParameters) == [true, false])
        #expect(AnswerableChallenge(challenges[0]) == nil)
        #expect(AnswerableChallenge(challenges[1]) == .basic(realm: "c"))
    }

    @Test("Rule R3: token and quoted string are the same value")
    func tokenAndQuotedStringAreTheSameValue() {
        #expect(parse("Basic realm=foo")[0].realm == "foo")
        #expect(parse("Basic realm=foo")[0].realm == parse("Basic realm=\"foo\"")[0].realm)
    }

    @Test("Rule R4: commas and scheme names inside quoted strings are data")
    func commasAndSchemeNamesInsideQuotedStringsAreData() {
        let challenges = parse("Newauth realm=\"foo, Basic realm=evil\"")
        #expect(challenges.map(\.scheme) == ["Newauth"])
        #expect(challenges[0].realm == "foo, Basic realm=evil")
        #expect(parse("Basic realm=\"a\\\"b\\\\c\"")[0].realm == "a\"b\\c")
    }

    @Test(
        "Rules R4 and R6: a malformed challenge is ignored without its neighbours",
        arguments: [
            "Basic realm=\"open", "Basic realm=\"open\\", "=x", "Basic realm=\"a\" charset=\"b\"",
            "Basic realm=\"a\"x", "Basic realm=\"a\", =", "Ba sic realm=\"x\"", "\"Basic\" realm=x",
            "Basic realm==\"x\"",
            "Basic realm=a b=c", "Basic realm=\"a\", b=c d", "Basic abc=, realm=\"x\"", "Basic realm='a' b='c'",
        ])
    func aMalformedChallengeVoidsItselfAndNoOther(field: String) {
        #expect(parse(field, "Digest realm=\"d\"").map(\.scheme) == ["Digest"])
        let isOwnOfFirst = field.hasPrefix("=") || field.hasPrefix("\"")
        let before = parse("Digest realm=\"first\", " + field).map(\.scheme)
        #expect(before == (isOwnOfFirst ? [] : ["Digest"]), "text without a scheme belongs to the challenge before it")
        let isOpen = field.utf8.count { $0 == UInt8(ascii: "\"") } % 2 == 1
        let behind = parse(field + ", Digest realm=\"d\", nonce=\"n\"")
        #expect(behind.map(\.scheme) == (isOpen ? [] : ["Digest"]), "text after an open quotation mark is not parsed")
        #expect(behind.allSatisfy { $0["nonce"] == "n" })
    }

    @Test(
        "Rule R4: no challenge is inferred after a malformed one",
        arguments: [
            ("Basic realm=\"a\" b=\"c\", d=\"e, Basic realm=f\", Digest realm=\"g\"", ["Digest"]),
            ("Basic realm=\"x\" y, NTLM, Foo z=\"Basic realm=1\"", ["NTLM", "Foo"]),
            ("Basic realm=\"x\" \", Basic realm=\"evil", []),
        ])
    func noChallengeIsInventedBehindAMalformedOne(field: String, schemes: [String]) {
        #expect(parse(field).map(\.scheme) == schemes)
    }

    @Test(
        "Rule 27: an unquoted realm is read up to the comma",
        arguments: [
            ("realm=foo", "foo"), ("realm=My Realm", "My Realm"), ("realm='x y'", "'x y'"), ("realm='x, y'", "'x, y'"),
            ("realm = My  Realm \t", "My  Realm"), ("realm=it's mine", "it's mine"), ("realm='x", "'x"),
            ("realm=<a@b>", "<a@b>"), ("realm='x'y", "'x'y"),
        ] as [(String, ExactText)])
    func anUnquotedRealmIsReadUpToTheComma(text: String, realm: ExactText) {
        for scheme in ["Basic", "Digest", "Bearer"] {
            let challenges = parse("\(scheme) \(text), charset=\"UTF-8\" , Foo a=b")
            #expect(challenges.map(\.scheme) == [scheme, "Foo"])
            #expect(challenges.map(\.realm) == [realm, nil])
            #expect(challenges.map { $0.weaknesses.contains(.unquotedRealm) } == [true, false])
            #expect(challenges[0]["charset"] == "UTF-8")
            #expect(parse("\(scheme) \(text)").map(\.realm) == [realm])
        }
        #expect(parse("Basic realm=\"foo\"")[0].weaknesses == [])
    }

    @Test(
        "Rule 27: a parameter list may begin with empty elements",
        arguments: [
            "Basic , realm=\"foo\"", "Basic ,, ,realm=\"foo\"", ",Basic\t,\trealm=\"foo\",",
        ])
    func aParameterListMayBeginWithEmptyElements(field: String) {
        #expect(parse(field, "NTLM").map(\.scheme) == ["Basic", "NTLM"])
        #expect(parse(field)[0].realm == "foo")
        #expect(parse("Basic , Digest realm=\"d\", nonce=\"n\"").map(\.realm) == [nil, "d"])
    }

    /// Parameters follow after a blank (RFC 9110 section 11.3), so the comma ends the challenge, and no scheme follows.
    @Test(
        "Rule R4: a comma right behind the scheme ends the challenge",
        arguments: [
            "Basic, realm=\"foo\"", "Basic,realm=\"foo\"", "Basic,,realm=foo", "Basic, realm=foo, charset=UTF-8",
        ])
    func aCommaRightBehindTheSchemeEndsTheChallenge(field: String) {
        #expect(parse(field).isEmpty)
        #expect(parse("\(field), NTLM").map(\.scheme) == ["NTLM"])
        #expect(parse("Basic, NTLM").map(\.scheme) == ["Basic", "NTLM"])
    }

    @Test("Rule 27: weak challenges come after every better one")
    func weakChallengesComeAfterEveryBetterOne() throws {
        let weak = [
            "Basic", "Digest realm=\"old\", nonce=\"n\"", "Basic realm=loose",
            "Digest realm=loose, nonce=\"n\", qop=\"auth\"",
        ]
        let better = [
            "Basic realm=\"b\"", "Bearer", "Digest realm=\"d\", nonce=\"n\", qop=\"auth\"",
            "Digest realm=\"s\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256",
        ]
        let list = OfferList(ChallengeHeader.parse(fields: weak + better), allowed: nil)
        #expect(list.answerable.map(\.realm) == ["s", "d", "loose", "old", "b", "loose", nil, nil])
        #expect(list.answerable.map(\.scheme).suffix(2) == ["bearer", "basic"])
        #expect(
            list.offers.map(\.weak) == [[.noRealm], [.noQop], [.unquotedRealm], [.unquotedRealm]]
                + better.map { _ in [] })
        var rules = SchemeRules(sites: [.init(hosts: [try HostPattern("localhost")], order: [.httpBasic, .httpDigest])])
        let ordered = OfferList(ChallengeHeader.parse(fields: weak + better), by: here, allowed: nil, rules)
        #expect(ordered.answerable.map(\.realm) == ["b", "loose", "d", "s", "old", "loose", nil])
        rules = SchemeRules()
        rules.allowsWeak = false
        let strict = OfferList(ChallengeHeader.parse(fields: weak), by: here, allowed: nil, rules)
        #expect(strict.answerable.isEmpty && strict.offers.count == 4)
    }

    @Test("Rule R5: whitespace around the equals sign and empty elements are accepted")
    func whitespaceAroundTheEqualsSignAndEmptyElementsAreAccepted() {
        let challenges = parse(", , Basic \t realm \t=\t \"x\" ,, ,Digest nonce = n ,, realm=r,")
        #expect(challenges.map(\.scheme) == ["Basic", "Digest"])
        #expect(challenges.map(\.realm) == ["x", "r"])
    }

    @Test("Rule R6: a token68 ends with its equals signs and is told apart from parameters")
    func token68AndParametersExcludeEachOther() {
        let challenges = parse("Negotiate abc+/-._~==, Basic realm=\"x\", NTLM, Foo bar=baz")
        #expect(challenges.map(\.scheme) == ["Negotiate", "Basic", "NTLM", "Foo"])
        #expect(challenges.map(\.token68) == ["abc+/-._~==", nil, nil, nil])
        #expect(challenges[3]["bar"] == "baz")
    }

    @Test("Rule R7: one field line and several lines are the same list")
    func oneFieldLineAndSeveralLinesAreTheSameList() {
        let together = parse("Digest realm=\"a\", nonce=\"n\", qop=\"auth\", Basic realm=\"b\"")
        let apart = parse("Digest realm=\"a\", nonce=\"n\", qop=\"auth\"", "Basic realm=\"b\"")
        #expect(together == apart)
        let mixed = parse("Digest realm=\"a\", nonce=\"n\", qop=\"auth\", Basic realm=\"b\"", "NTLM")
        #expect(mixed.map(\.scheme) == ["Digest", "Basic", "NTLM"])
        #expect(together.map(\.raw) == ["Digest realm=\"a\", nonce=\"n\", qop=\"auth\"", "Basic realm=\"b\""])
    }

    @Test("Rule R8: unknown schemes are reported and come last")
    func unknownSchemesAreReportedAndComeLast() {
        let offers = OfferList(parse("Foo, Bar baz, Basic realm=\"x\", Qux a=1"), allowed: nil)
        #expect(offers.offers.map(\.scheme) == ["Foo", "Bar", "Basic", "Qux"])
        #expect(offers.offers.map(\.supported) == [false, false, true, false])
        #expect(offers.answerable.map(\.scheme) == ["basic", "foo", "bar", "qux"])
    }

    @Test("Rule R9: several realms of one scheme are all listed")
    func severalRealmsOfOneSchemeAreAllParsed() {
        let challenges = parse("Basic realm=\"a\", Basic realm=\"b\"")
        #expect(challenges.map(\.realm) == ["a", "b"])
        #expect(OfferList(challenges, allowed: nil).offers.map(\.scheme) == ["Basic", "Basic"])
    }

    @Test("Rule R17: the strongest scheme comes first")
    func theStrongestSchemeComesFirst() {
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

    @Test("Rule 27: Basic without a realm is a space of its own")
    func basicWithoutARealmIsASpaceOfItsOwn() {
        let offers = OfferList(parse("Basic charset=\"UTF-8\""), allowed: nil)
        #expect(offers.offers.map(\.weak) == [[.noRealm]])
        #expect(offers.answerable == [.basic(realm: nil)])
        #expect(offers.answerable[0].protectionSpace(at: here).realm == nil)
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

    /// For any input, the parser terminates and invents no scheme.
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

/// SplitMix64, which yields the same sequence for the same seed.
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
