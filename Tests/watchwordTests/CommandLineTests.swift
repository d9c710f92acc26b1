import ArgumentParser
import Testing
import WatchwordProtocol

@testable import watchword

extension Secret {
    fileprivate init(_ text: String) {
        var text = text
        self = text.withUTF8 { Secret(copying: UnsafeRawBufferPointer($0)) }
    }

    fileprivate var text: String { withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
}

@Suite struct CommandLineTests {
    /// The syntax is that of `--cert` in curl's manual.
    @Test(arguments: [
        ("me.pem", "me.pem", nil), ("me.pem:sesame", "me.pem", "sesame"), ("me.pem:a:b", "me.pem", "a:b"),
        ("me.pem:", "me.pem", ""), ("a\\:b:c", "a:b", "c"), ("a\\\\:c", "a\\", "c"), ("a\\b", "a\\b", nil),
        ("a\\", "a\\", nil), ("pkcs11:object=me?pin-value=1", "pkcs11:object=me?pin-value=1", nil),
        (":secret", "", "secret"),
    ])
    func dividesFileAndPassphrase(text: String, file: String, passphrase: String?) {
        let (found, word) = CommandLineCertificate.split(Secret(text))
        #expect(found.text == file && word?.text == passphrase)
    }

    @Test func makesPathsForAProgramWithAnotherFolder() {
        #expect(CommandLineCertificate.absolute(Secret("/a/b")).text == "/a/b")
        #expect(CommandLineCertificate.absolute(Secret("pkcs11:object=me")).text == "pkcs11:object=me")
        let relative = CommandLineCertificate.absolute(Secret("a/b")).text
        #expect(relative.hasPrefix("/") && relative.hasSuffix("/a/b"))
    }

    @Test(arguments: [
        ("host:1", "http://host:1"), ("bob:x@host", "http://bob:x@host"), ("socks5h://host", "socks5h://host"),
    ])
    func aProxyWithoutSchemeSpeaksHTTP(text: String, url: String) {
        #expect(ProxyOptions.withScheme(Secret(text)).text == url)
    }

    @Test func pinsAndFingerprints() throws {
        let hash = (0..<32).map { UInt8($0 * 8) }
        let pin = try #require(Fingerprint.pin(Hexadecimal.text(hash)))
        #expect(pin == "sha256//AAgQGCAoMDhASFBYYGhweICIkJigqLC4wMjQ2ODo8Pg=")
        #expect(try TLSOptions.pin(pin) == Hexadecimal.text(hash))
        #expect(Fingerprint.withColons("00ff0a") == "00:FF:0A")
        #expect(Fingerprint.withColons("\u{1B}[A") == "\u{FFFD}[A" && Hexadecimal.bytes("abc") == nil)
    }

    @Test(arguments: [
        "", "sha256//", "sha256//AAAA", "AAgQGCAoMDhASFBYYGhweICIkJigqLC4wMjQ2ODo8Pg=", "/key.pem",
        "sha256//AAgQGCAoMDhASFBYYGhweICIkJigqLC4wMjQ2ODo8Pg=;sha256//AAgQGCAoMDhASFBYYGhweICIkJigqLC4wMjQ2ODo8Pg=",
    ])
    func refusesOtherPins(text: String) {
        #expect(throws: (any Error).self) { try TLSOptions.pin(text) }
    }

    @Test(
        arguments: [
            ([], nil), (["--anyauth", "--basic"], nil), (["--basic"], [.httpBasic]),
            (["--digest", "--ntlm"], [.httpDigest, .ntlm]), (["--negotiate"], [.negotiate]),
            (["--oauth2-bearer", "t"], nil), (["--oauth2-bearer", "t", "--digest"], [.httpDigest, .bearer]),
        ] as [([String], [AuthenticationMethod]?)])
    func namesTheSchemes(arguments: [String], methods: [AuthenticationMethod]?) throws {
        #expect(try LoginOptions.parse(arguments).methods == methods)
    }

    @Test(arguments: ServerTrustFacts.Problem.allCases)
    func everyProblemHasAText(problem: ServerTrustFacts.Problem) {
        #expect(ShownCertificate.sentence(problem.rawValue) != problem.rawValue)
    }
}
