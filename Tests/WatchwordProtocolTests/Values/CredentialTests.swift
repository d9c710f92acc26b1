import JSONText
import Testing
import WatchwordProtocol

struct CredentialTests {
    private func read(_ text: String) throws -> Credential { try Credential(JSON.parse(text), at: "credential") }

    private func secret(_ text: String) -> Secret { Array(text.utf8).withUnsafeBytes { Secret(copying: $0) } }

    private func withMember(_ name: String, _ value: JSON) -> JSON {
        (["type": "password", "user": "bob", "password": "pw"] as JSON).adding([name: value])
    }

    @Test func aPasswordIsReadWithItsDefaults() throws {
        #expect(
            try read(#"{"type":"password","user":"bob","password":"pw"}"#)
                == .login(LoginCredential(user: "bob", password: secret("pw"), persistence: .forSession)))
    }

    @Test(arguments: Persistence.allCases)
    func aPasswordIsReadAsItWasWritten(persistence: Persistence) throws {
        for (user, password) in [("bob", "pw"), ("", ""), ("Zoë 𝄞", "pä:ss\"\\/ word")] as [(ExactText, String)] {
            let credential = Credential.login(
                LoginCredential(user: user, password: secret(password), persistence: persistence))
            #expect(try read(credential.json.text) == credential)
        }
    }

    @Test func proposedIsReadAsItWasWritten() throws {
        #expect(Credential.proposed.json.text == #"{"type":"proposed"}"#)
        #expect(try read(#"{"type":"proposed"}"#) == .proposed)
    }

    @Test func aDomainIsTaken() throws {
        #expect(problem { try Credential(withMember("domain", "CORP"), at: "credential") } == nil)
    }

    @Test(
        "Rule P15: an unknown member makes a credential invalid",
        arguments: ["pasword", "Password", "username", "persistance", "expires", "", "type "])
    func anUnknownMemberMakesACredentialInvalid(name: String) throws {
        for value in [JSON.null, "x", 1] {
            let reason = try #require(problem { try Credential(withMember(name, value), at: "credential") })
            #expect(reason.hasPrefix("credential has the unknown member \"\(name)\""))
        }
    }

    /// Members are looked up byte by byte, so a name that Swift compares as equal is another one.
    @Test func aLookalikeOfAMemberIsUnknown() throws {
        let json: JSON = ["type": "certificate", "certificate": "/c.pem", "private\u{212A}ey": "/k.pem"]
        #expect(problem { try Credential(json, at: "credential") }?.contains("unknown member") == true)
    }

    @Test(arguments: ["user", "password", "persistence"])
    func aProposedCredentialHasNoOtherMembers(member: String) {
        let json = (["type": "proposed"] as JSON).adding([member: "x"])
        #expect(problem { try Credential(json, at: "credential") }?.contains("unknown member") == true)
    }

    @Test(arguments: [
        ("type", JSON.null, "credential.type is missing"), ("type", 1, "credential.type must be a string"),
        ("user", .null, "credential.user is missing"), ("user", 1, "credential.user must be a string"),
        ("password", .null, "credential.password is missing"),
        ("password", 1234, "credential.password must be a string of at most 4096 bytes"),
        ("persistence", "forever", "credential.persistence must be one of: none, forSession, permanent"),
        ("domain", 1, "credential.domain must be a string"),
    ])
    func isRefused(member: String, value: JSON, reason: String) {
        #expect(problem { try Credential(withMember(member, value), at: "credential") } == reason)
    }

    @Test(arguments: ["PASSWORD", "", "tickets"])
    func otherTypesAreNotKnown(type: String) {
        let known = "password, token, header, certificate, trust, proposed, stored"
        #expect(
            problem { try Credential(withMember("type", .string(type)), at: "credential") }
                == "credential.type must be one of: \(known), not \"\(type)\"")
    }

    private static let hash = String(repeating: "0a", count: 32)

    @Test(arguments: [
        #"{"type":"token","token":"a.b-c_d~e+f/g==","persistence":"none"}"#,
        #"{"type":"header","scheme":"Hoba","value":"a=\"b\"","state":"2","persistence":"none"}"#,
        #"{"type":"password","user":"u","password":"p","domain":"CORP","persistence":"permanent"}"#,
        #"{"type":"certificate","certificate":"/a.pem","privateKey":"/a.key","passphrase":"p","persistence":"forSession"}"#,
        #"{"type":"trust","spkiSha256":"\#(hash)","persistence":"permanent"}"#,
    ])
    func isReadAsItWasWritten(text: String) throws {
        let credential = try Credential(JSON.parse(text), at: "credential")
        #expect(credential.json.text == text)
    }

    @Test(
        "Rule K3: tokens and other credentials are checked as strictly as passwords",
        arguments: [
            (#"{"type":"token","token":""}"#, "credential.token must be a token"),
            (#"{"type":"token","token":"=a"}"#, "credential.token must be a token"),
            (#"{"type":"token","token":"a b"}"#, "credential.token must be a token"),
            (#"{"type":"token","token":"a","user":"u"}"#, "credential has the unknown member"),
            (#"{"type":"header","scheme":"","value":"a"}"#, "credential.scheme must be a token"),
            (#"{"type":"header","scheme":"A B","value":"a"}"#, "credential.scheme must be a token"),
            (#"{"type":"header","scheme":"A","value":"a\r\nB: c"}"#, "credential.value must be a text without control"),
            (#"{"type":"certificate","certificate":"a.pem"}"#, "credential.certificate must be an absolute path"),
            (#"{"type":"trust"}"#, "credential.spkiSha256 is missing"),
            (#"{"type":"certificate","certificate":"/a.pem","user":"u"}"#, "credential has the unknown member"),
            (#"{"type":"trust","spkiSha256":"\#(hash)","user":"u"}"#, "credential has the unknown member"),
            (#"{"type":"trust","spkiSha256":"00"}"#, "credential.spkiSha256 must be 64 hexadecimal digits"),
        ])
    func otherFormsAreCheckedAsStrictly(text: String, reason: String) throws {
        let told = problem { try Credential(JSON.parse(text), at: "credential") }
        #expect(told?.hasPrefix(reason) == true, "\(told ?? "accepted")")
    }

    @Test(arguments: ["[]", "1", #""bob:pw""#, "true"])
    func anythingButAnObjectIsRefused(text: String) throws {
        let reason = try #require(problem { try read(text) })
        #expect(reason.hasPrefix("credential must be an object, not "))
        #expect(!reason.contains("pw"))
    }

    @Test("Rule B3: control characters in user and password are refused", arguments: Array(UInt8(0)...0x1F) + [0x7F])
    func controlCharactersAreRefused(control: UInt8) throws {
        let text = "a\(UnicodeScalar(control))b"
        for (name, reason) in [
            ("user", "credential.user must be a text without control characters"),
            ("password", "credential.password must be a text without control characters"),
        ] {
            #expect(problem { try Credential(withMember(name, .string(text)), at: "credential") } == reason)
        }
    }

    @Test(arguments: ["user", "password"])
    func theLimitIsReachedAndNotPassed(member: String) {
        let largest = String(repeating: "é", count: Limits.credentialBytes / 2)
        #expect(problem { try Credential(withMember(member, .string(largest)), at: "c") } == nil)
        let reason = problem { try Credential(withMember(member, .string(largest + "x")), at: "c") }
        #expect(reason?.contains("at most \(Limits.credentialBytes) bytes") == true)
    }

    @Test("Rule M6: refusals never quote the password")
    func refusalsNeverQuoteThePassword() throws {
        let texts = [
            #"{"type":"password","user":"b","password":"hunter2\u0000"}"#, #"{"type":"password","password":"hunter2"}"#,
            #"{"type":"password","user":1,"password":"hunter2"}"#,
            #"{"type":"password","user":"b","password":["hunter2"]}"#,
            #"{"type":"token","user":"b","password":"hunter2"}"#, #"{"type":"password","pasword":"hunter2"}"#,
        ]
        for text in texts {
            let reason = try #require(problem { try read(text) })
            #expect(!reason.contains("hunter2"))
        }
    }

    @Test func credentialsThatSendTheSameAreTheSame() {
        let credential = LoginCredential(user: "Zo\u{EB}", password: secret("pw"), persistence: .none)
        var other = credential
        other.persistence = .permanent
        #expect(credential.isSame(as: other), "the persistence does not matter")
        #expect(!credential.isSame(as: LoginCredential(user: "Zo\u{EB}", password: secret("pW"))))
        #expect(!credential.isSame(as: LoginCredential(user: "zo\u{EB}", password: secret("pw"))))
        #expect(!credential.isSame(as: LoginCredential(user: "Zoe\u{308}", password: secret("pw"))))
    }
}
