import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The computed values: RFC 7616 section 3.4, SECURITY-RULES D2, D4 and D6 to D11.
@Suite struct DigestResponseTests {
    @Test(
        "Rule D2: the responses match the vectors of RFC 7616",
        arguments: [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ])
    func theResponsesAreThoseOfTheRFC(algorithm: String, response: String) throws {
        let answer = try #require(Mufasa.response(algorithm))
        #expect(answer.response(for: Mufasa.credential, Mufasa.request).revealed == response)
        #expect(
            answer.authorization(for: Mufasa.credential, Mufasa.request).revealed == """
                Digest username="Mufasa", realm="http-auth@example.org", nonce="\(Mufasa.nonce)", \
                uri="/dir/index.html", algorithm=\(algorithm), qop=auth, nc=00000001, cnonce="\(Mufasa.clientNonce)", \
                opaque="\(Mufasa.opaque)", response="\(response)"
                """)
    }

    /// The value that section 3.9.2 prints is a truncated SHA-512.
    @Test("Rule D2: SHA-512-256 is that of FIPS 180-4, not a truncated SHA-512")
    func sha512256IsThatOfFIPS1804NotATruncatedSHA512() throws {
        let challenge = try #require(
            digestChallenge(
                """
                realm="api@example.org", qop="auth", algorithm=SHA-512-256, charset=UTF-8, userhash=true, \
                nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS"
                """))
        let jason = LoginCredential(user: "Jäsøn Doe", password: secret("Secret, or not?"))
        let answer = DigestResponse(
            challenge: challenge, nonceCount: 1, clientNonce: "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v")
        let text = answer.authorization(for: jason, DigestRequest(method: "GET", target: "/doe.json")).revealed
        #expect(text.contains("username=\"793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b\", "))
        #expect(text.hasSuffix("response=\"3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5\""))
    }

    @Test(
        "Rule D4: auth-int covers the body",
        arguments: [
            ("MD5", "", "35ec75c6389a8fd8412c13222b3affe8"),
            ("MD5", "Hakuna matata", "4b1500ee056a7308257dee735f689175"),
            ("SHA-256", "", "322f218d701da7c7ef51e3ba6fa2551a2bf36425e1218fc1508c6bf65cbd4448"),
            ("SHA-256", "Hakuna matata", "15b642370fd995aabbd9940296f96807ec250e1b534c643c37d5e4d21d4d8497"),
            ("SHA-512-256", "", "722f41f4e8b637e9faa8d59bdece9e91bac819cda5ff57f6e6b21a78b9d5e5b9"),
            ("SHA-512-256", "Hakuna matata", "09a2eaee09abab7ecc066b854303646e868632bf4980e21fa004138e93f45795"),
        ])
    func authIntCoversTheBody(algorithm: String, body: String, response: String) throws {
        let answer = try #require(Mufasa.response(algorithm, qop: "auth-int"))
        let request = DigestRequest(method: "POST", target: "/dir/index.html", body: Array(body.utf8))
        #expect(answer.response(for: Mufasa.credential, request).revealed == response)
        #expect(answer.authorization(for: Mufasa.credential, request).revealed.contains("qop=auth-int, nc="))
    }

    @Test(
        "Rule D6: the session key is derived from the first nonce and client nonce",
        arguments: [
            ("MD5-sess", nil, "e783283f46242139c486a698fec7211d"),
            ("SHA-256-sess", nil, "2fd51b3a77ad75bad6afad6003e818d767133c46d9e2749e7f5232ae1ea3efd7"),
            ("SHA-512-256-sess", nil, "3f2a34f923c38b0fb26dce2fdfc2ce326c23cecf86fbb1444f3e51fbbc2cb92e"),
            ("MD5-sess", "next", "024890dca8a922796bd6a8324bc748c2"),
            ("SHA-256-sess", "next", "7cd72319fac9ebd5e69582b8298e4769d9f4c1633c2e2d06b914a9d3ca5a8e78"),
            ("SHA-512-256-sess", "next", "5a03e73ba65897edb363519c0ce18ddd1d2e6731ba991c3fd08e9447520f6fea"),
        ] as [(String, ExactText?, String)])
    func theSessionKeyIsMadeOfTheFirstNonces(algorithm: String, next: ExactText?, response: String) throws {
        let answer = try #require(
            Mufasa.response(algorithm, sessionNonce: next.map { _ in Mufasa.nonce }, nonce: next ?? Mufasa.nonce))
        #expect(answer.response(for: Mufasa.credential, Mufasa.request).revealed == response)
    }

    @Test(
        "Rule D3: the answer of RFC 2069 has no count and no client nonce",
        arguments: [
            ("MD5", "7b2cc3b30e75b4777ea31027084363fd"),
            ("SHA-256", "a1306b0595a6c7fe96c448631fb5cfbd5107bd1fe1da729d978dd7446b812363"),
        ])
    func theAnswerOfRFC2069HasNoCountAndNoClientNonce(algorithm: String, response: String) throws {
        let answer = try #require(Mufasa.response(algorithm, qop: nil))
        #expect(
            answer.authorization(for: Mufasa.credential, Mufasa.request).revealed == """
                Digest username="Mufasa", realm="http-auth@example.org", nonce="\(Mufasa.nonce)", \
                uri="/dir/index.html", algorithm=\(algorithm), opaque="\(Mufasa.opaque)", response="\(response)"
                """)
    }

    @Test("Rule D8: opaque is returned unchanged, and left out when absent")
    func opaqueIsReturnedUnchangedAndLeftOutWhenAbsent() throws {
        let parameters = "realm=\"r\", nonce=\"n\", qop=\"auth\""
        #expect(digestField(parameters)?.contains("opaque") == false)
        #expect(digestField(parameters + ", opaque=\"\"")?.contains("opaque=\"\"") == true)
        #expect(digestField(parameters + ", opaque=\" a=\\\"b\\\\ ,\"")?.contains("opaque=\" a=\\\"b\\\\ ,\"") == true)
    }

    @Test("Rule D9: quotes are escaped and bare values are not quoted")
    func quotesAreEscapedAndBareValuesAreNotQuoted() throws {
        let parameters = "realm=\"a\\\"b\\\\c\", nonce=\"n\\\"\", qop=\"auth\", algorithm=\"md5\""
        let text = try #require(digestField(parameters, user: "x\"y\\", target: "/?\""))
        #expect(text.contains("username=\"x\\\"y\\\\\", realm=\"a\\\"b\\\\c\", nonce=\"n\\\"\", uri=\"/?\\\"\""))
        #expect(text.contains("algorithm=md5, qop=auth, nc=00000001, cnonce="))
    }

    @Test(
        "Rule D10: the user is hashed only with userhash=true",
        arguments: [("true", true), ("TRUE", true), ("false", false), ("1", false)])
    func theUserIsHashedWhereTheServerAsksForIt(value: String, isHashed: Bool) throws {
        let parameters = "realm=\"http-auth@example.org\", nonce=\"n\", qop=\"auth\", userhash=\(value)"
        let text = try #require(digestField(parameters, user: "Mufasa"))
        #expect(text.contains("username=\"Mufasa\"") == !isHashed)
        #expect(text.contains("username=\"4238f3a16167373febb9bc4d43db9cc4\"") == isHashed)
        #expect(text.contains("userhash=true") == isHashed)
        #expect(!text.contains("username*"))
    }

    @Test(
        "Rule D10: a user that a quoted string cannot hold is sent as username*",
        arguments: [
            ("Jäsøn Doe", "UTF-8''J%C3%A4s%C3%B8n%20Doe"), ("\u{1}%'*\u{7F}é", "UTF-8''%01%25%27%2A%7F%C3%A9"),
            ("日a!#$&+-.^_`|~Z9", "UTF-8''%E6%97%A5a!#$&+-.^_`|~Z9"),
        ])
    func aUserThatFitsInNoQuotedStringIsAnExtendedValue(user: ExactText, value: String) throws {
        let parameters = "realm=\"r\", nonce=\"n\", qop=\"auth\", charset=UTF-8"
        let text = try #require(digestField(parameters, user: user))
        #expect(text.hasPrefix("Digest username*=\(value), realm="))
        #expect(!text.contains("username="))
        let hashed = try #require(digestField(parameters + ", userhash=true", user: user))
        #expect(hashed.hasPrefix("Digest username=\"") && !hashed.contains("username*"))
        #expect(digestField(parameters, user: "bob \"x\"")?.hasPrefix("Digest username=\"bob \\\"x\\\"\"") == true)
    }

    private static let inUTF8 = (
        name: "username*=UTF-8''J%C3%A4s%C3%B8n%20Doe",
        response: "bf53262cedf7e9a907bd05ebc687d97068480884fb9d65f75acf095d92ed3e9c"
    )

    /// The field is UTF-8, which `latin1` reads byte by byte.
    private static let quotedUTF8 = "username=\"J\u{C3}\u{A4}s\u{C3}\u{B8}n Doe\""

    @Test(
        "Rule D11: with and without a charset the bytes are UTF-8",
        arguments: [
            ("utf-8", inUTF8.name, inUTF8.response), ("UTF-8", inUTF8.name, inUTF8.response),
            (nil, quotedUTF8, inUTF8.response), ("utf-16", quotedUTF8, inUTF8.response),
        ])
    func theBytesAreUTF8(charset: String?, name: String, response: String) throws {
        let parameters = "realm=\"api@example.org\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256"
        let text = try #require(
            digestField(
                parameters + (charset.map { ", charset=\"\($0)\"" } ?? ""), user: "Jäsøn Doe",
                password: "Sécret, or not?", target: "/doe.json"))
        #expect(text.hasPrefix("Digest \(name), realm="))
        #expect(text.hasSuffix("response=\"\(response)\""))
    }

    @Test(
        "Rule D11: without a charset only a user that fits in a quoted string is sent",
        arguments: [
            ("bob", "pw", true, true), ("ÿ", "\u{80}ÿ~", true, true), ("Zoë", "€", true, true), ("Ā", "pw", true, true),
            ("e\u{301}", "pw", true, true), ("a\u{1}", "pw", false, true), ("bob", "日本", true, true),
            ("", "", true, true), ("日\u{7F}", "pw", false, true),
        ])
    func withoutACharsetOnlyAUserThatFitsInAQuotedStringIsSent(
        user: ExactText, password: String, fits: Bool, fitsUTF8: Bool
    ) throws {
        let credential = LoginCredential(user: user, password: secret(password))
        let plain = try #require(digestChallenge("realm=\"r\", nonce=\"n\", qop=\"auth\""))
        let utf8 = try #require(digestChallenge("realm=\"r\", nonce=\"n\", qop=\"auth\", charset=UTF-8"))
        #expect(AnswerableChallenge.digest(plain).canCarry(credential, at: here) == fits)
        #expect(AnswerableChallenge.digest(utf8).canCarry(credential, at: here) == fitsUTF8)
    }

    @Test(
        "Rule D11: a host that the configuration lists gets ISO 8859-1, unless it states UTF-8",
        arguments: [
            (nil, "h", "username=\"Jäsøn Doe\"", "82cbc032826ea128fdbb6c985e63cee01f1a4723cacf3afa807948c13eae6074"),
            (
                "utf-16", "h", "username=\"Jäsøn Doe\"",
                "82cbc032826ea128fdbb6c985e63cee01f1a4723cacf3afa807948c13eae6074"
            ),
            ("UTF-8", "h", inUTF8.name, inUTF8.response), (nil, "other", quotedUTF8, inUTF8.response),
        ])
    func aListedHostGetsISO88591(charset: String?, host: String, name: String, response: String) throws {
        var rules = SchemeRules()
        rules.latin1Hosts = [try HostPattern(host)]
        let parameters =
            "realm=\"api@example.org\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256\(charset.map { ", charset=\"\($0)\"" } ?? "")"
        let challenge = try #require(digestChallenge(parameters))
        let server = Challenger.server(Origin(scheme: .http, host: "h", port: 80))
        let asked = AnswerableChallenge.digest(challenge)
        var attempt = Attempt(
            asked, asked.protectionSpace(at: server),
            Candidate(credential: login("Jäsøn Doe", "Sécret, or not?"), source: .client, partition: nil))
        var nonces = DigestNonces()
        let environment = FetchEnvironment(
            now: .zero, Boxed(FetchRules(schemes: rules)), clientNonces: .fixed("c"))
        let text = attempt.authorization(
            for: DigestRequest(method: "GET", target: "/doe.json"), environment, nonces: &nonces)?.latin1
        #expect(text?.hasPrefix("Digest \(name), realm=") == true)
        #expect(text?.hasSuffix("response=\"\(response)\"") == true)
    }

    /// The hashes are of Python's hashlib, over the bytes FC and E9.
    @Test(
        "Rules D8 and X2: realm, nonce and opaque are hashed and returned byte for byte",
        arguments: [
            ("realm=\"Büro\", nonce=\"nü\", opaque=\"\\\"é\", qop=\"auth\"", "f7a3e3236ffa724ca12de1b43222a2e3"),
            (
                "realm=\"Büro\", nonce=\"nü\", opaque=\"é\", qop=\"auth\", algorithm=MD5-sess",
                "f72958bb339ffc09d0a8db2590af1f0e"
            ),
            ("realm=\"Büro\", nonce=\"nü\", opaque=\"é\"", "316a4bbdde76120026de8d38a5d3e89a"),
            ("realm=\"B\u{C3}\u{BC}ro\", nonce=\"nü\", opaque=\"é\"", "bdcb876b49985925424e9294938b8e0d"),
        ])
    func receivedBytesAreReturned(parameters: String, response: String) throws {
        let challenge = try #require(digestChallenge(latin1: parameters))
        let answer = DigestResponse(challenge: challenge, nonceCount: 1, clientNonce: "c")
        let text = answer.authorization(
            for: login("bob", "pw"), DigestRequest(method: "GET", target: "/")
        ).latin1
        for returned in parameters.split(separator: ", ").prefix(3) { #expect(text.contains(returned)) }
        #expect(text.hasSuffix("response=\"\(response)\""))
    }

    @Test("Rule D10: the hash of the user covers the bytes of the realm")
    func theHashOfTheUserCoversTheBytesOfTheRealm() throws {
        let challenge = try #require(
            digestChallenge(latin1: "realm=\"B\u{FC}\", nonce=\"n\", qop=\"auth\", userhash=true"))
        let answer = DigestResponse(challenge: challenge, nonceCount: 1, clientNonce: "c")
        let text = answer.authorization(
            for: login("bob", "pw"), DigestRequest(method: "GET", target: "/")
        ).latin1
        #expect(text.hasPrefix("Digest username=\"ad53ec2fc9aded7082175830833dc891\""))
    }

    @Test("Rule D14: the next nonce is taken byte for byte")
    func theNextNonceIsTakenByteForByte() {
        let info = AuthenticationInfo(fields: [received(latin1: "nextnonce=\"n\u{E9}\"")])
        #expect(info.nextNonce?.headerBytes == [0x6E, 0xE9])
    }

    @Test("Rule D16: a byte in a domain that is not UTF-8 is percent-encoded")
    func aByteInADomainIsPercentEncoded() throws {
        let domain = try #require(DigestDomain(received(latin1: "/\u{E9}")))
        let origin = Origin(scheme: .http, host: "h", port: 80)
        #expect(domain.matchLength(of: "/%E9/x", at: origin) != nil)
        #expect(domain.matchLength(of: "/%C3%A9", at: origin) == nil)
    }

    @Test(
        "Rule D1: the algorithm is returned as it was supplied",
        arguments: ["md5", "MD5", "Md5", "sha-256", "SHA-256-SESS", "MD5-SESS", "md5-Sess", "sha-512-256"])
    func theAlgorithmIsReturnedAsItWasSupplied(name: String) throws {
        for value in [name, "\"\(name)\""] {
            let text = digestField("realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=\(value)")
            #expect(text?.contains(", algorithm=\(name), qop") == true)
        }
        #expect(digestField("realm=\"r\", nonce=\"n\", qop=\"auth\"")?.contains("algorithm") == false)
    }

    @Test(
        "Rule D11: a password that is not valid UTF-8 is sent unchanged",
        arguments: [[0xC2], [0xC3, 0x41], [0xE4], [0xC4, 0x80], [0x41, 0xFF, 0xFE]] as [[UInt8]])
    func aPasswordThatIsNotUTF8IsNotSentAsISO88591(bytes: [UInt8]) {
        let password = bytes.withUnsafeBytes { Secret(copying: $0) }
        let credential = LoginCredential(user: "bob", password: password)
        #expect(DigestCharset.latin1(of: password) == nil)
        #expect(DigestCharset.utf8.bytes(of: credential)?.password == password)
        #expect(DigestCharset.unstated.bytes(of: credential)?.password == password)
        #expect(DigestCharset.latin1.bytes(of: credential)?.password == password)
    }

    /// Both are in one encoding, because a server compares against one text.
    @Test(
        "Rule D11: beyond ISO 8859-1 both user and password are UTF-8",
        arguments: [("Ł日", "pw"), ("Zoë", "€"), ("é", "日"), ("Ł日", "é")])
    func beyondISO88591BothUserAndPasswordAreUTF8(user: ExactText, password: String) throws {
        let bytes = DigestCharset.latin1.bytes(of: login(user, password))
        #expect(bytes?.user == Array(user.utf8) && bytes?.password == secret(password))
        let short = try #require(DigestCharset.latin1.bytes(of: login("é", "§ç")))
        #expect(short.user == [0xE9] && short.password.withUnsafeBytes { Array($0) } == [0xA7, 0xE7])
    }
}
