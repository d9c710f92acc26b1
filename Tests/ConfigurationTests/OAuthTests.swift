import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Configuration

/// The tables `[oauth."URL"]`.
@Suite struct OAuthTests {
    /// A table for `https://a.example` with a client id.
    private func table(_ options: String, url: String = "https://a.example") -> String {
        "[oauth.\"\(url)\"]\nclient-id = \"c\"\n\(options)\n"
    }

    private func rule(_ text: String) throws -> OAuthRule {
        let rules = try #require(settings(text), "\(problems(text))").oauthRules
        #expect(rules.count == 1)
        return try #require(rules.first)
    }

    /// For each option, a value that is not its default, and what it changes.
    private static let values: [String: (text: String, change: @Sendable (inout OAuthDraft) -> Void)] = [
        "issuer": ("'https://login.example/t/'", { $0.rule.issuer = "https://login.example/t/" }),
        "client-id": ("'urn:client 7'", { $0.rule.clientID = "urn:client 7" }),
        "client-secret-file": ("'~/secret'", { $0.secretFile = "~/secret" }),
        "scopes": ("['read', 'api://x/.default']", { $0.rule.scopes = ["read", "api://x/.default"] }),
        "flow": ("'device'", { $0.rule.flow = .device }),
        "redirect-port": ("1024", { $0.rule.redirectPort = 1024 }),
        "resource": ("'urn:x:y?z'", { $0.rule.resourceIndicator = "urn:x:y?z" }),
        "register": ("true", { $0.rule.registersClient = true }),
        "dpop": ("false", { $0.rule.usesDPoP = false }),
    ]

    @Test(arguments: OAuthDraft.options.map(\.name)) func anOptionChangesWhatItIsFor(name: String) throws {
        let (text, change) = try #require(Self.values[name])
        let option = try #require(OAuthDraft.options.first { $0.name == name })
        var (draft, expected) = (OAuthDraft(rule: OAuthRule(resource: "r")), OAuthDraft(rule: OAuthRule(resource: "r")))
        change(&expected)
        let entry = try #require(try TOMLDocument.parse(Array("x = \(text)".utf8)).first)
        #expect(option.apply(entry.value, to: &draft).isEmpty)
        #expect(draft.rule == expected.rule && draft.secretFile == expected.secretFile)
        #expect(draft.rule != OAuthRule(resource: "r") || draft.secretFile != nil)
    }

    @Test func theTableOfOptionsIsWellFormed() throws {
        #expect(Set(Self.values.keys) == Set(OAuthDraft.options.map(\.name)))
        for option in OAuthDraft.options {
            for text in [option.type.example, option.defaultText].compactMap(\.self) {
                var draft = OAuthDraft(rule: OAuthRule(resource: "r"))
                let entry = try #require(try TOMLDocument.parse(Array("x = \(text)".utf8)).first)
                #expect(option.apply(entry.value, to: &draft).isEmpty)
            }
        }
    }

    @Test func readsWholeTables() throws {
        let text = """
            oauth."http://127.0.0.1:8080".flow = "device"
            [oauth."HTTPS://API.Example:443/v1/"]
            issuer = "https://Login.example/Tenant/"
            client-id = "w"
            client-secret-file = "/run/secret"
            scopes = ["read"]
            flow = "browser"
            redirect-port = 65535
            resource = "https://api.example/v1"
            dpop = false
            [oauth]
            "http://127.0.0.1:8080" = { client-id = "w" }
            """
        // A table of dotted keys cannot be extended later.
        #expect(problems(text).count == 1)
        let valid = text.split(separator: "\n").dropFirst().joined(separator: "\n")
        let found = try #require(settings(valid), "\(problems(valid))")
        var long = OAuthRule(resource: "https://api.example/v1")
        long.issuer = "https://Login.example/Tenant/"
        long.clientID = "w"
        long.scopes = ["read"]
        long.flow = .browser
        long.redirectPort = 65_535
        long.resourceIndicator = "https://api.example/v1"
        long.usesDPoP = false
        var short = OAuthRule(resource: "http://127.0.0.1:8080")
        short.clientID = "w"
        #expect(found.oauthRules == [long, short])
        let file = ClientSecretFile(
            resource: long.resource, path: "/run/secret", line: 4,
            key: "oauth.\"HTTPS://API.Example:443/v1/\".client-secret-file")
        #expect(found.clientSecretFiles == [file] && found.fileProblems == [])
    }

    @Test func theLongestResourceComesFirst() throws {
        let urls = ["https://b.example", "https://a.example", "https://a.example/v1/x", "https://a.example/v1"]
        let found = try #require(settings(urls.map { table("", url: $0) }.joined()))
        #expect(
            found.oauthRules.map(\.resource) == [
                "https://a.example/v1/x", "https://a.example/v1", "https://a.example", "https://b.example",
            ])
    }

    @Test(arguments: [
        ("https://api.example", "https://api.example"), ("https://api.example/", "https://api.example"),
        ("https://API.example:443/A/b/", "https://api.example/A/b"),
        ("https://api.example:8443/a%2Fb", "https://api.example:8443/a%2Fb"),
        ("https://api.example/a/..b/.c", "https://api.example/a/..b/.c"),
        ("http://127.0.0.1/v1", "http://127.0.0.1/v1"), ("http://127.3.2.1:80", "http://127.3.2.1"),
        ("http://[::1]:9700/", "http://[::1]:9700"), ("http://LocalHost:1", "http://localhost:1"),
        ("https://[2001:DB8:0::1]/", "https://[2001:db8::1]"),
    ])
    func aResourceIsNormalised(url: String, resource: String) throws {
        #expect(try rule(table("", url: url)).resource == resource)
    }

    @Test(arguments: [
        ("api.example", "begins with https://"), ("ftp://api.example", "begins with https://"),
        ("https:/api.example", "begins with https://"), ("", "begins with https://"),
        ("http://api.example", "http:// is only for"), ("http://10.0.0.1", "http:// is only for"),
        ("http://127.0.0.1.example", "http:// is only for"), ("http://x.localhost", "http:// is only for"),
        ("http://localhost.example", "http:// is only for"), ("http://[::2]", "http:// is only for"),
        ("http://127.0.0.1@api.example/", "user name or the password"),
        ("https://bob:secret@api.example", "user name or the password"),
        ("https://api.example/?token=secret", "query"), ("https://api.example/#secret", "fragment"),
        ("https://api.example/a/../b", "segments . and .."), ("https://api.example/a/.", "segments . and .."),
        ("https://api.example/%2e%2E/b", "segments . and .."), ("https://api.example/.%2e", "segments . and .."),
        ("https://api.example//a", "empty segment"), ("https://api.example/a//", "empty segment"),
        ("https://api.example/a b", "percent-encoded"), ("https://api.example/ä", "percent-encoded"),
        ("https://api.example/a\\\\b", "percent-encoded"), ("https://api.example/%zz", "two hexadecimal digits"),
        ("https://api.example/%2", "two hexadecimal digits"), ("https://", "no valid host"),
        ("https:///v1", "no valid host"),
        ("https://a..b", "no valid host"), ("https://127.1", "no valid host"),
        ("https://api.example:0", "invalid port"),
        ("https://api.example:70000", "invalid port"), ("https://[::1", "missing \"]\""),
    ])
    func refusesOtherResources(url: String, problem: String) {
        let found = problems("\n\(table("", url: url))")
        #expect(found.map(\.line) == [2] && found.map(\.key) == ["oauth"])
        #expect(found.first?.text.contains(problem) == true, "\(found)")
        #expect(!found.contains { "\($0)".contains("secret") })
        // An issuer is a URL like that, but its slashes stay.
        #expect(problems(table("issuer = \"\(url)\"")).map(\.line) == [3])
    }

    @Test func aURLHasALimit() throws {
        let longest = "https://a.example/" + String(repeating: "x", count: Limits.urlBytes - 18)
        #expect(try rule(table("", url: longest)).resource == longest)
        #expect(problems(table("", url: longest + "x")).map(\.text) == ["the URL is too long"])
    }

    @Test func anIssuerStaysAsItIsWritten() throws {
        for issuer in ["https://Login.Example:443/T/", "http://127.0.0.1:4593/api/oidc", "https://login.example/"] {
            #expect(try rule(table("issuer = \"\(issuer)\"")).issuer == issuer)
        }
    }

    @Test func oneResourceHasOneTable() {
        let found = problems(table("", url: "https://a.example/v1") + table("", url: "https://A.example:443/v1/"))
        #expect(found.map(\.line) == [4] && found.map(\.key) == ["oauth"])
        #expect(found.first?.text == "duplicate of the table in line 1; remove one")
        #expect(problems(table("") + table("")).map(\.line) == [4])
    }

    @Test(arguments: [
        (
            "issuer = 5", "issuer",
            "expected a URL that begins with https://, found a whole number; for example, write: issuer = "
        ),
        ("issuer.x = 5", "issuer", "found a table"),
        ("isuer = 'https://b.example'", "isuer", "unknown option; did you mean issuer?"),
        (
            "secret = 'hunter2'", "secret",
            "the options of [oauth.\"URL\"] are issuer, client-id, client-secret-file, scopes, flow, "
        ),
        ("\"a.b\\u001B\" = 1", "\"a.b\u{FFFD}\"", "unknown option"),
        ("scopes = 'read'", "scopes", "expected a list of scopes, found a string"),
        ("scopes = ['a b']", "scopes", "write one string for each scope"), ("scopes = ['']", "scopes", "not empty"),
        ("scopes = ['a\"']", "scopes", "quotation marks"), ("scopes = ['a\\']", "scopes", "backslashes"),
        ("scopes = ['ä']", "scopes", "write one string"), ("scopes = ['a', 'a']", "scopes", "listed twice"),
        (
            "flow = 'Browser'", "flow",
            "expected \"browser\" or \"device\" or \"client-credentials\" or \"registry\", found \"Browser\""
        ),
        ("redirect-port = 1023", "redirect-port", "expected a whole number from 1024 to 65535, found 1023"),
        ("redirect-port = 65536", "redirect-port", "found 65536"),
        ("redirect-port = '7777'", "redirect-port", "found a string"),
        ("redirect-port = 7777\nflow = 'device'", "redirect-port", "only flow = \"browser\""),
        ("resource = 'api'", "resource", "expected an absolute URI"),
        ("resource = 'https:'", "resource", "absolute URI"),
        ("resource = 'https://a/#x'", "resource", "absolute URI"), ("resource = '1a:b'", "resource", "absolute URI"),
        ("resource = 'a:b c'", "resource", "absolute URI"), ("resource = 'a_b:c'", "resource", "absolute URI"),
        ("dpop = 'no'", "dpop", "expected true or false, found a string"),
        ("register = 1", "register", "true or false"),
        ("register = true", "register", "remove client-id or register"),
        (
            "client-secret-file = 'secret'\nissuer = 'https://i.example'", "client-secret-file",
            "expected an absolute path"
        ),
        ("client-secret-file = '~bob/secret'", "client-secret-file", "expected an absolute path"),
        (
            "client-secret-file = '/s'", "client-secret-file",
            "without issuer, the server at https://a.example would choose"
        ),
    ])
    func reportsAnOption(options: String, key: String, text: String) {
        let found = problems(table(options))
        #expect(found.map(\.line) == [3] && found.map(\.key) == ["oauth.\"https://a.example\".\(key)"], "\(found)")
        #expect(found.first?.text.contains(text) == true, "\(found)")
        #expect(found.first?.text.contains("hunter2") == false)
    }

    @Test(arguments: [
        ("", "client-id is missing"), ("flow = 'browser'", "client-id is missing"),
        ("flow = 'client-credentials'\nclient-id = 'c'", "client-secret-file is missing"),
        ("flow = 'registry'", "issuer is missing"), ("register = false", "client-id is missing"),
    ])
    func reportsAMissingOptionAtTheTable(options: String, text: String) {
        let found = problems("\n[oauth.\"https://a.example\"]\n\(options)")
        #expect(found.map(\.line) == [2] && found.map(\.key) == ["oauth.\"https://a.example\""], "\(found)")
        #expect(found.first?.text.contains(text) == true, "\(found)")
    }

    @Test func aClientIDHasALimit() throws {
        let longest = String(repeating: "c", count: Limits.oauthClientIDBytes)
        func text(_ id: String) -> String { "[oauth.\"https://a.example\"]\nclient-id = \"\(id)\"" }
        #expect(try rule(text(longest)).clientID == longest)
        for id in ["", longest + "c", "ä", "a\\u0007"] {
            #expect(problems(text(id)).map(\.key) == ["oauth.\"https://a.example\".client-id"])
        }
    }

    @Test func aClientThatRegistersItselfNeedsNoID() throws {
        let found = try rule("[oauth.\"https://a.example\"]\nregister = true")
        #expect(found.registersClient && found.clientID == nil && found.issuer == nil)
        let secret = problems(
            "[oauth.\"https://a.example\"]\nregister = true\nissuer = 'https://i.example'\nclient-secret-file = '/s'")
        #expect(secret.map(\.line) == [4] && secret.first?.text.contains("belongs to a client id") == true)
        let device = problems("[oauth.\"https://a.example\"]\nregister = true\nflow = 'device'")
        #expect(device.map(\.line) == [2] && device.first?.text.contains("for the browser only") == true)
    }

    @Test func aRegistryHasOnlyATokenService() throws {
        func text(_ options: String) -> String { "[oauth.\"https://r.example\"]\nflow = 'registry'\n\(options)" }
        for issuer in ["https://Auth.example:443", "https://auth.example/"] {
            let found = try rule(text("issuer = '\(issuer)'"))
            #expect(found.issuer == "https://auth.example" && found.flow == .registry && found.clientID == nil)
        }
        let path = problems(text("issuer = 'https://auth.example/token'"))
        #expect(
            path.map(\.line) == [3] && path.first?.text.hasSuffix("write: issuer = \"https://auth.example\"") == true)
        for (name, value) in Self.values where name != "issuer" && name != "flow" {
            let found = problems(text("issuer = 'https://auth.example'\n\(name) = \(value.text)"))
            #expect(
                found.map(\.line) == [4] && found.first?.text.contains("no such option") == true, "\(name): \(found)")
        }
    }

    @Test(arguments: [
        ("oauth = 5", "oauth", "write [oauth.\"URL\"] on a line of its own"),
        ("[[oauth]]", "oauth", "write [oauth.\"URL\"] on a line of its own"),
        ("oauth.issuer = 'x'", "oauth", "begins with https://"),
        ("[oauth.https.a]", "oauth", "begins with https://"),
        ("oauth.\"https://a.example\" = 'x'", "oauth", "expected a table"),
        ("[[oauth.\"https://a.example\"]]\nclient-id = 'c'", "oauth", "expected a table"),
        ("[outh]", "outh", "did you mean [oauth.\"URL\"]?"),
        ("[\"oauth.https://a.example\"]", "\"oauth.https://a.example\"", "the tables are [limits], "),
    ])
    func reportsOtherFormsOfTables(text: String, key: String, problem: String) {
        let found = problems(text)
        #expect(found.map(\.line) == [1] && found.map(\.key) == [key], "\(found)")
        #expect(found.first?.text.contains(problem) == true, "\(found)")
    }

    @Test func anEmptyTableHasNoRules() {
        #expect(settings("[oauth]") == Settings())
    }

    @Test func keysAreSplitAsTOMLSplitsThem() throws {
        let text = """
            a."b.c"."d\\"e\\\\".f-1 = 1
            [["x[0]"."y.z"]]
            k = 1
            [["x[0]"."y.z"]]
            "" = 1
            """
        let entries = try TOMLDocument.parse(Array(text.utf8))
        #expect(entries.allSatisfy { $0.parts.count == $0.depth })
        let parts = entries.map(\.parts)
        #expect(parts.contains([.key("a"), .key("b.c"), .key("d\"e\\"), .key("f-1")]))
        #expect(parts.contains([.key("x[0]"), .key("y.z"), .index(0), .key("k")]))
        #expect(parts.contains([.key("x[0]"), .key("y.z"), .index(1), .key("")]))
    }
}
