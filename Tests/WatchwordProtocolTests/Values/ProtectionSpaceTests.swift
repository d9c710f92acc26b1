import JSONText
import Testing
import WatchwordProtocol

struct ProtectionSpaceTests {
    private static let staff = ProtectionSpace(
        scheme: "https", host: "intranet.example", port: 443, realm: "Staff", authenticationMethod: .httpDigest)

    /// `staff` with one difference.
    private static func variant(_ change: (inout ProtectionSpace) -> Void) -> ProtectionSpace {
        var space = staff
        change(&space)
        return space
    }

    @Test("Rule 19: spaces are equal when all members are")
    func spacesAreEqualWhenAllMembersAre() {
        let other = ProtectionSpace(
            scheme: "https", host: "intranet.example", port: 443, realm: "Staff", authenticationMethod: .httpDigest)
        #expect(other == Self.staff)
        #expect(Set([other, Self.staff]).count == 1)
    }

    @Test("Rule 19: hosts compare without regard to case")
    func hostsCompareWithoutRegardToCase() {
        let other = ProtectionSpace(
            scheme: "https", host: "Intranet.EXAMPLE", port: 443, realm: "Staff", authenticationMethod: .httpDigest)
        #expect(other == Self.staff)
        #expect(Set([other, Self.staff]).count == 1)
        #expect(other.host == "intranet.example")
    }

    @Test(
        "Rule 19: any other difference counts",
        arguments: [
            variant { $0.scheme = "http" }, variant { $0.host = "intranet.example.org" }, variant { $0.port = 8443 },
            variant { $0.realm = "staff" }, variant { $0.realm = "Staff " }, variant { $0.realm = "" },
            variant { $0.realm = nil }, variant { $0.authenticationMethod = .httpBasic },
        ])
    func anyOtherDifferenceCounts(other: ProtectionSpace) {
        #expect(other != Self.staff)
        #expect(Set([other, Self.staff]).count == 2)
    }

    @Test("Rules 19 and R10: realms compare byte for byte")
    func realmsCompareByteForByte() {
        let composed = Self.variant { $0.realm = "Caf\u{E9}" }
        let decomposed = Self.variant { $0.realm = "Cafe\u{301}" }
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed]).count == 2)
        #expect(composed == Self.variant { $0.realm = "Caf\u{E9}" })
    }

    @Test func aMissingRealmDiffersFromAnEmptyOne() {
        #expect(Self.variant { $0.realm = nil } != Self.variant { $0.realm = "" })
        #expect(Self.variant { $0.realm = nil } == Self.variant { $0.realm = nil })
    }

    @Test(arguments: [
        ("https", AuthenticationMethod.httpBasic, true), ("https", .bearer, true), ("https", .ntlm, true),
        ("http", .httpDigest, true), ("http", .negotiate, true), ("http", .httpBasic, false), ("http", .bearer, false),
        ("http", .ntlm, false), ("http", .other, false),
    ])
    func secureTransportDependsOnSchemeAndMethod(scheme: String, method: AuthenticationMethod, secure: Bool) {
        let space = Self.variant {
            $0.scheme = scheme
            $0.authenticationMethod = method
        }
        #expect(space.receivesCredentialSecurely == secure)
        #expect(space.json["receivesCredentialSecurely"]?.boolean == secure)
    }

    @Test func isWrittenAsTheProtocolSays() {
        #expect(
            Self.staff.json.text
                == #"{"protocol":"https","host":"intranet.example","port":443,"realm":"Staff","#
                + #""authenticationMethod":"httpDigest","isProxy":false,"receivesCredentialSecurely":true}"#)
        #expect(Self.variant { $0.realm = nil }.json["realm"]?.isNull == true)
    }

    @Test func aProxySpaceDiffersFromAServerSpace() throws {
        let proxy = ProtectionSpace(
            scheme: "http", host: "p", port: 1, realm: "r", authenticationMethod: .httpBasic, proxyType: .socks)
        #expect(
            proxy.json.text
                == #"{"protocol":"socks","host":"p","port":1,"realm":"r","authenticationMethod":"httpBasic","#
                + #""isProxy":true,"proxyType":"socks","receivesCredentialSecurely":false}"#)
        #expect(try ProtectionSpace(JSON.parse(proxy.json.text)) == proxy)
        var server = proxy
        server.proxyType = nil
        #expect(server != proxy)
        #expect(!SpacePattern(server).matches(proxy) && !SpacePattern(proxy).matches(server))
        let short = #"{"protocol":"https","host":"p","port":1,"authenticationMethod":"httpBasic","isProxy":true}"#
        #expect(try ProtectionSpace(JSON.parse(short)).proxyType == .https)
    }

    @Test(arguments: [staff, variant { $0.realm = nil }, variant { $0.realm = "\u{0}\"\\é" }])
    func isReadAsItWasWritten(space: ProtectionSpace) throws {
        #expect(try ProtectionSpace(JSON.parse(space.json.text)) == space)
    }

    @Test(arguments: [
        ("protocol", JSON.null, "protectionSpace.protocol is missing"),
        ("host", 1, "protectionSpace.host must be a string"),
        ("port", 0, "protectionSpace.port must be a whole number from 1 to 65535"),
        ("port", 65_536, "protectionSpace.port must be a whole number from 1 to 65535"),
        ("realm", .array([]), "protectionSpace.realm must be a string"),
        ("authenticationMethod", .null, "protectionSpace.authenticationMethod is missing"),
        ("isProxy", "no", "protectionSpace.isProxy must be true or false"),
    ])
    func isRefused(member: String, value: JSON, reason: String) {
        #expect(problem { try ProtectionSpace(Self.staff.json.adding([member: value])) } == reason)
    }

    @Test(arguments: [
        ("Basic", AuthenticationMethod.httpBasic), ("DIGEST", .httpDigest), ("nTLM", .ntlm), ("Negotiate", .negotiate),
        ("bearer", .bearer), ("Hawk", .other), ("", .other), ("Basic ", .other), ("ba\u{17F}ic", .other),
    ])
    func schemesAreNamedWithoutRegardToCase(scheme: String, method: AuthenticationMethod) {
        #expect(AuthenticationMethod(scheme: scheme) == method)
    }
}
