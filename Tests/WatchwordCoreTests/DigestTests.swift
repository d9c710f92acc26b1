import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The challenges that are answered, and the use of nonces: RFC 7616 sections 3.3 and 3.4, SECURITY-RULES D1, D3 to D6 and
/// D16 to D18.
@Suite struct DigestTests {
    @Test(
        "Rule D1: known algorithms are accepted regardless of case, others refused",
        arguments: [
            ("MD5", true), ("md5-SESS", true), ("SHA-256", true), ("sha-256-sess", true), ("SHA-512-256", true),
            ("SHA-512-256-sess", true), ("SHA-1", false), ("MD5-x", false), ("", false), ("-sess", false),
        ])
    func theKnownAlgorithms(name: String, isKnown: Bool) {
        #expect((digestChallenge("realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=\"\(name)\"") != nil) == isKnown)
    }

    @Test("Rule D1: a missing algorithm is MD5 and is not written back")
    func aMissingAlgorithmIsMD5AndIsNotWrittenBack() throws {
        let challenge = try #require(digestChallenge("realm=\"r\", nonce=\"n\", qop=\"auth\""))
        #expect(challenge.algorithm.name == "MD5")
        #expect(digestField("realm=\"r\", nonce=\"n\", qop=\"auth\"")?.contains("algorithm") == false)
    }

    @Test(
        "Rule D17: a challenge without a realm or a nonce is unusable",
        arguments: [
            "nonce=\"n\", qop=\"auth\"", "realm=\"r\", qop=\"auth\"", "qop=auth", "realm=\"r\"", "realm=, nonce=, qop=",
        ])
    func withoutARealmOrANonceThereIsNoAnswer(parameters: String) {
        #expect(digestChallenge(parameters) == nil)
    }

    @Test(
        "Rules D3 and D4: auth is preferred and unknown options are ignored",
        arguments: [
            ("auth", .auth), ("foo , AUTH", .auth), ("auth-int,auth", .auth), (",\tauth-int ,", .authInt),
            ("AUTH-INT", .authInt), ("foo, auth-int", .authInt), ("foo", nil), ("", nil), (" , ", nil),
            ("authint", nil),
            ("legacy", nil),
        ] as [(String, DigestChallenge.Protection?)])
    func authIsPreferredAndUnknownOptionsAreIgnored(qop: String, protection: DigestChallenge.Protection?) {
        let parameters = "realm=\"r\", nonce=\"n\", qop=\"\(qop)\""
        #expect(digestChallenge(parameters)?.protection == protection)
    }

    @Test("Rule D3: without qop the answer is that of RFC 2069")
    func withoutQopTheAnswerIsThatOfRFC2069() {
        let parameters = "realm=\"r\", nonce=\"n\""
        #expect(digestChallenge(parameters)?.protection == .legacy)
        #expect(digestChallenge(parameters + ", algorithm=MD5-sess") == nil)
    }

    @Test("Rule D5: the count rises for each nonce and never repeats")
    func theCountRisesForEachNonceAndNeverRepeats() throws {
        let challenge = try #require(digestChallenge("realm=\"r\", nonce=\"n\", qop=\"auth\""))
        let origin = Challenger.server(try FetchURL("http://h/").origin)
        var nonces = DigestNonces()
        #expect(!nonces.remembers(challenge, at: origin))
        let counts = (1...300).map { _ in nonces.nextResponse(to: challenge, at: origin, clientNonce: "c").nonceCount }
        #expect(counts == Array(1...300))
        let text = DigestResponse(challenge: challenge, nonceCount: 300, clientNonce: "c")
            .authorization(for: Mufasa.credential, Mufasa.request).revealed
        #expect(text.contains("nc=0000012c,"))
        let elsewhere = Challenger.server(try FetchURL("http://other/").origin)
        #expect(nonces.nextResponse(to: challenge, at: elsewhere, clientNonce: "c").nonceCount == 1)
    }

    @Test("Rule D6: the client nonce of a session stays the same")
    func theClientNonceOfASessionStaysTheSame() throws {
        let session = try #require(digestChallenge("realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5-sess"))
        let plain = try #require(digestChallenge("realm=\"r\", nonce=\"m\", qop=\"auth\""))
        let origin = Challenger.server(try FetchURL("http://h/").origin)
        var nonces = DigestNonces()
        let used = ["a", "b"].map { nonces.nextResponse(to: session, at: origin, clientNonce: $0).clientNonce }
        #expect(used == ["a", "a"])
        let fresh = ["a", "b"].map { nonces.nextResponse(to: plain, at: origin, clientNonce: $0).clientNonce }
        #expect(fresh == ["a", "b"])
    }

    @Test("Rules D6 and D14: a session outlives the server's nonce")
    func aSessionOutlivesTheServersNonce() throws {
        let first = try #require(digestChallenge("realm=\"r\", nonce=\"one\", qop=\"auth\", algorithm=MD5-sess"))
        let origin = Challenger.server(try FetchURL("http://h/").origin)
        var nonces = DigestNonces()
        var response = nonces.nextResponse(to: first, at: origin, clientNonce: "a")
        for nonce in ["two", "three"] as [ExactText] {
            let next = nonces.follow(response, with: nonce, at: origin)
            #expect(nonces.remembers(next, at: origin))
            response = nonces.nextResponse(to: next, at: origin, clientNonce: "b")
            #expect(response.challenge.nonce == nonce)
            #expect((response.nonceCount, response.clientNonce) == (1, "a"))
            #expect(response.sessionNonce == "one")
        }
    }

    @Test("Rule D14: a nonce that is announced twice continues its count")
    func aNonceThatIsAnnouncedTwiceContinuesItsCount() throws {
        let first = try #require(digestChallenge("realm=\"r\", nonce=\"one\", qop=\"auth\""))
        let origin = Challenger.server(try FetchURL("http://h/").origin)
        var nonces = DigestNonces()
        var response = nonces.nextResponse(to: first, at: origin, clientNonce: "a")
        for count in 1...3 {
            let next = nonces.follow(response, with: "two", at: origin)
            response = nonces.nextResponse(to: next, at: origin, clientNonce: "b")
            #expect((response.nonceCount, response.clientNonce) == (count, "b"))
        }
        #expect(nonces.follow(response, with: "one", at: origin) == first)
    }

    @Test(
        "Rule D16: a domain covers paths of the same origin only",
        arguments: [
            ("/a", "/a", 2), ("/a", "/a/b", 2), ("/a/ /a/b", "/a/b/c", 4), ("/a", "/b", nil), ("/a/./x/..", "/a/b", 3),
            ("http://h/a", "/a/b", 2), ("HTTP://H:80/a", "/a/b", 2), ("http://h", "/a/b", 1), ("//h/a", "/a/b", nil),
            ("http://other/a", "/a/b", nil), ("https://h/a", "/a/b", nil), ("http://h:81/a", "/a/b", nil),
            ("http://other/ /b", "/b", 2), ("a", "/a", nil), ("/a?x", "/a", nil), ("http://u@h/a /a\\\\b", "/a", nil),
            ("*", "/a", nil), ("ftp://h/a", "/a", nil), ("\t/c   /a  ", "/a/b", 2),
            ("/other", "/others", nil), ("/other", "/other/s", 6), ("/other", "/other", 6), ("/other/", "/other", nil),
            ("http://h/other", "/others/x", nil), ("/", "/x", 1), ("/a", "/a/..%2fb", nil), ("/ /a", "/a/..;/b", 1),
        ] as [(String, ExactText, Int?)])
    func aDomainCoversPathsOfTheSameOriginOnly(list: String, path: ExactText, length: Int?) throws {
        let challenge = digestChallenge("realm=\"r\", nonce=\"n\", qop=\"auth\", domain=\"\(list)\"")
        let domain = try #require(challenge?.domain)
        #expect(domain.matchLength(of: path, at: try FetchURL("http://h/").origin) == length)
    }

    @Test(
        "Rule D16: an empty domain counts as absent", arguments: ["", ", domain=\"\"", ", domain=\"  \""])
    func withoutADomainTheWholeServerIsCovered(domain: String) throws {
        let challenge = try #require(digestChallenge("realm=\"r\", nonce=\"n\", qop=\"auth\"" + domain))
        #expect(challenge.domain == nil)
    }

    @Test("Rule D18: the strongest algorithm comes first, then the server's order")
    func theStrongestAlgorithmComesFirstThenTheServersOrder() {
        let fields = [
            "Basic realm=\"b\"",
            """
            Digest realm="1", nonce="n", qop="auth", Digest realm="2", nonce="n", qop="auth", algorithm=SHA-1, \
            Digest realm="3", nonce="n", qop="auth-int", algorithm=SHA-256
            """,
            """
            Digest realm="4", nonce="n", qop="auth", algorithm=SHA-512-256-sess, \
            Digest realm="5", nonce="n", qop="auth", algorithm=SHA-256
            """,
        ]
        let list = OfferList(ChallengeHeader.parse(fields: fields), allowed: nil)
        #expect(list.answerable.map(\.realm) == ["4", "3", "5", "1", "b"])
        #expect(list.offers.map(\.supported) == [true, true, false, true, true, true])
    }

    @Test func nonceTableIsBoundedAndForgetsTheOldest() throws {
        let origin = Challenger.server(try FetchURL("http://h/").origin)
        var nonces = DigestNonces()
        let first = try #require(digestChallenge("realm=\"r\", nonce=\"first\", qop=\"auth\""))
        var response = nonces.nextResponse(to: first, at: origin, clientNonce: "c")
        for number in 0..<AcceptedCredentials.share(of: 1024) {
            response = nonces.nextResponse(
                to: nonces.follow(response, with: "\(number)", at: origin), at: origin, clientNonce: "c")
        }
        #expect(!nonces.remembers(first, at: origin))
        #expect(nonces.remembers(first.followed(by: "0"), at: origin))
    }
}

@Suite struct BasicSchemeTests {
    /// RFC 7617 sections 2 and 2.1.
    @Test(
        "Rule B4: user and password are encoded as UTF-8",
        arguments: [
            ("Aladdin", "open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), ("test", "123£", "dGVzdDoxMjPCow=="),
            ("", "", "Og=="),
            ("a", "b:c", "YTpiOmM="),
        ])
    func encodesUserAndPassword(user: ExactText, password: String, encoded: String) {
        let credential = LoginCredential(user: user, password: secret(password))
        #expect(BasicScheme.authorization(for: credential).revealed == "Basic \(encoded)")
    }

    @Test("Rule B2: Basic cannot carry a user with a colon")
    func basicCannotCarryAUserWithAColon() {
        #expect(!BasicScheme.canCarry(LoginCredential(user: "a:b", password: secret("p"))))
        #expect(BasicScheme.canCarry(LoginCredential(user: "ab", password: secret(":"))))
    }
}
