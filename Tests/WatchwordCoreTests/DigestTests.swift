import Testing
import WatchwordProtocol

@testable import WatchwordCore

@Suite struct DigestTests {
    private func parsed(_ parameters: String) -> DigestChallenge? {
        ChallengeHeader.parse(fields: ["Digest \(parameters)"]).first.flatMap { DigestChallenge($0) }
    }

    private let bob = PasswordCredential(user: "Mufasa", password: secret("Circle of Life"))

    /// RFC 7616 section 3.9.1; the SHA-512-256 value is the one that SHA-512/256 really gives for the data of section 3.9.2.
    @Test(arguments: [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ])
    func givesTheResponsesOfTheRFC(algorithm: String, response: String) throws {
        let challenge = try #require(
            parsed(
                """
                realm="http-auth@example.org", qop="auth, auth-int", algorithm=\(algorithm), \
                nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
                """))
        let answer = DigestResponse(
            challenge: challenge, nonceCount: 1, clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
        #expect(answer.response(for: bob, method: "GET", requestTarget: "/dir/index.html").revealed == response)
        #expect(
            answer.authorization(for: bob, method: "GET", requestTarget: "/dir/index.html").revealed == """
                Digest username="Mufasa", realm="http-auth@example.org", \
                nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", uri="/dir/index.html", algorithm=\(algorithm), \
                qop=auth, nc=00000001, cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", \
                opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS", response="\(response)"
                """)
    }

    @Test func sha512t256IsFIPSAndNotATruncatedSHA512() throws {
        let challenge = try #require(
            parsed(
                """
                realm="api@example.org", qop="auth", algorithm=SHA-512-256, \
                nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS"
                """))
        let jason = PasswordCredential(user: "Jäsøn Doe", password: secret("Secret, or not?"))
        let answer = DigestResponse(
            challenge: challenge, nonceCount: 1, clientNonce: "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v")
        #expect(
            answer.response(for: jason, method: "GET", requestTarget: "/doe.json").revealed
                == "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5")
    }

    @Test(arguments: [
        ("MD5", true), ("md5-SESS", true), ("SHA-256", true), ("sha-256-sess", true), ("SHA-512-256", true),
        ("SHA-1", false), ("MD5-x", false), ("", false),
    ])
    func d1KnowsTheAlgorithms(name: String, isKnown: Bool) {
        #expect((DigestAlgorithm(name: name) != nil) == isKnown)
    }

    @Test func d1AMissingAlgorithmIsMD5AndIsNotWrittenBack() throws {
        let challenge = try #require(parsed("realm=\"r\", nonce=\"n\", qop=\"auth\""))
        let text = DigestResponse(challenge: challenge, nonceCount: 1, clientNonce: "c")
            .authorization(for: bob, method: "GET", requestTarget: "/").revealed
        #expect(challenge.algorithm.name == "MD5")
        #expect(!text.contains("algorithm"))
    }

    @Test(arguments: [
        "nonce=\"n\", qop=\"auth\"", "realm=\"r\", qop=\"auth\"", "realm=\"r\", nonce=\"n\"",
        "realm=\"r\", nonce=\"n\", qop=\"auth-int\"", "realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-1",
    ])
    func d3AndD17ChallengesThatCannotBeAnsweredAreNot(parameters: String) {
        #expect(parsed(parameters) == nil)
    }

    @Test func d3UnknownQopOptionsAreIgnored() {
        #expect(parsed("realm=\"r\", nonce=\"n\", qop=\"foo , AUTH\"") != nil)
    }

    @Test func d5CountsUpForEachNonceAndNeverTwice() throws {
        let challenge = try #require(parsed("realm=\"r\", nonce=\"n\", qop=\"auth\""))
        let origin = try FetchURL("http://h/").origin
        var nonces = DigestNonces()
        #expect(!nonces.remembers(challenge, at: origin))
        let counts = (1...300).map { _ in nonces.nextResponse(to: challenge, at: origin, clientNonce: "c").nonceCount }
        #expect(counts == Array(1...300))
        let text = DigestResponse(challenge: challenge, nonceCount: 300, clientNonce: "c")
            .authorization(for: bob, method: "GET", requestTarget: "/").revealed
        #expect(text.contains("nc=0000012c,"))
        let elsewhere = try FetchURL("http://other/").origin
        #expect(nonces.nextResponse(to: challenge, at: elsewhere, clientNonce: "c").nonceCount == 1)
    }

    @Test func d6TheClientNonceOfASessionStays() throws {
        let session = try #require(parsed("realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5-sess"))
        let plain = try #require(parsed("realm=\"r\", nonce=\"m\", qop=\"auth\""))
        let origin = try FetchURL("http://h/").origin
        var nonces = DigestNonces()
        let used = ["a", "b"].map { nonces.nextResponse(to: session, at: origin, clientNonce: $0).clientNonce }
        #expect(used == ["a", "a"])
        let fresh = ["a", "b"].map { nonces.nextResponse(to: plain, at: origin, clientNonce: $0).clientNonce }
        #expect(fresh == ["a", "b"])
    }

    @Test func d9QuotesAreEscapedAndBareValuesAreNotQuoted() throws {
        let challenge = try #require(parsed("realm=\"a\\\"b\\\\c\", nonce=\"n\", qop=\"auth\""))
        let text = DigestResponse(challenge: challenge, nonceCount: 1, clientNonce: "c")
            .authorization(
                for: PasswordCredential(user: "x\"y\\", password: secret("p")), method: "GET", requestTarget: "/?\""
            )
            .revealed
        #expect(text.contains("username=\"x\\\"y\\\\\""))
        #expect(text.contains("realm=\"a\\\"b\\\\c\""))
        #expect(text.contains("qop=auth, nc=00000001,"))
    }

    @Test func nonceTableIsBoundedAndForgetsTheOldest() throws {
        let origin = try FetchURL("http://h/").origin
        var nonces = DigestNonces()
        let first = try #require(parsed("realm=\"r\", nonce=\"first\", qop=\"auth\""))
        _ = nonces.nextResponse(to: first, at: origin, clientNonce: "c")
        for number in 0..<1024 {
            let other = try #require(parsed("realm=\"r\", nonce=\"\(number)\", qop=\"auth\""))
            _ = nonces.nextResponse(to: other, at: origin, clientNonce: "c")
        }
        #expect(!nonces.remembers(first, at: origin))
    }
}

@Suite struct BasicSchemeTests {
    /// RFC 7617 sections 2 and 2.1.
    @Test(arguments: [
        ("Aladdin", "open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), ("test", "123£", "dGVzdDoxMjPCow=="),
        ("", "", "Og=="),
        ("a", "b:c", "YTpiOmM="),
    ])
    func encodesUserAndPassword(user: String, password: String, encoded: String) {
        let credential = PasswordCredential(user: user, password: secret(password))
        #expect(BasicScheme.authorization(for: credential).revealed == "Basic \(encoded)")
    }

    @Test func b2CannotCarryAUserWithAColon() {
        #expect(!BasicScheme.canCarry(PasswordCredential(user: "a:b", password: secret("p"))))
        #expect(BasicScheme.canCarry(PasswordCredential(user: "ab", password: secret(":"))))
    }
}
