import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The checks of metadata of servers (RFC 8414) and resources (RFC 9728).
@Suite struct OAuthMetadataTests {
    // MARK: Servers

    @Test func theMetadataNameTheEndpoints() throws {
        let found = try server()
        #expect(found.authorization?.text == "https://as.example/auth")
        #expect(found.token?.text == "https://as.example/token")
        #expect(found.device?.text == "https://as.example/device")
        #expect(found.revocation?.text == "https://as.example/revoke")
        #expect(found.registration?.text == "https://as.example/register")
        #expect(!found.sendsIssuer && !found.takesSecretInBody && !found.offersDPoP)
    }

    @Test(arguments: [
        ("https://as.example", "https://as.example"), ("https://as.example/", "https://as.example"),
        ("https://as.example", "https://as.example/"), ("https://as.example/a/", "https://as.example/a/"),
    ])
    func theSameIssuerIsAccepted(named: String, issuer: String) throws {
        let metadata = serverMetadata.adding(["issuer": .string(named)]).serialized()
        #expect(try AuthorizationServer(metadata, for: issuer).issuer == issuer)
    }

    @Test(
        "Rule K7: another issuer is refused",
        arguments: [
            ("https://evil.example", "https://as.example"), ("https://as.example/a", "https://as.example"),
            ("https://as.example/a/", "https://as.example/a"), ("https://as.example/a", "https://as.example/a/"),
            ("https://AS.example", "https://as.example"), ("https://as.example:443", "https://as.example"),
            ("http://as.example", "https://as.example"), ("https://as.example//", "https://as.example"),
            ("https://as.exampl\u{0065}\u{301}", "https://as.exampl\u{e9}"), ("", "https://as.example"),
        ])
    func anotherIssuerIsRefused(named: String, issuer: String) {
        let metadata = serverMetadata.adding(["issuer": .string(named)]).serialized()
        #expect(failure { _ = try AuthorizationServer(metadata, for: issuer) }?.kind == .loginFailed)
    }

    @Test(arguments: ["[]", "{", "", "null", "{\"issuer\":1}", "{\"token_endpoint\":\"https://as.example/t\"}"])
    func whatIsNoMetadataIsRefused(text: String) {
        let found = failure { _ = try AuthorizationServer(Array(text.utf8), for: "https://as.example") }
        #expect(found?.kind == .loginFailed)
    }

    @Test func metadataThatAreTooLargeAreRefused() throws {
        func metadata(_ size: Int) -> [UInt8] {
            let start = serverMetadata.serialized()
            return start + [UInt8](repeating: 0x20, count: size - start.count)
        }
        let issuer = "https://as.example"
        #expect(throws: Never.self) { try AuthorizationServer(metadata(OAuthDocument.largestSize), for: issuer) }
        #expect(throws: FetchFailure.self) {
            try AuthorizationServer(metadata(OAuthDocument.largestSize + 1), for: issuer)
        }
    }

    @Test(
        "Rule K7: endpoints are reached by https, or on this machine",
        arguments: [
            "authorization_endpoint", "token_endpoint", "device_authorization_endpoint", "revocation_endpoint",
            "registration_endpoint",
        ])
    func endpointsAreSecure(name: String) throws {
        for text in ["http://as.example/x", "ftp://as.example/x", "//as.example/x", "http://127.0.0.1.example/", ""] {
            #expect(throws: FetchFailure.self, "\(text)") { try server(.object([(name, .string(text))])) }
        }
        #expect(throws: Never.self) { try server(.object([(name, .string("https://other.example/x"))])) }
    }

    @Test("Rule K7: only a server on this machine names others on this machine")
    func onlyAServerOnThisMachineNamesOthersOnThisMachine() throws {
        for text in ["http://127.0.0.1:4593/x", "http://[::1]/x", "http://localhost/x"] {
            let change: JSON = ["token_endpoint": .string(text)]
            #expect(throws: FetchFailure.self, "\(text)") { try server(change) }
            #expect(throws: Never.self, "\(text)") { try server(change.adding(["issuer": "http://127.0.0.1:9"])) }
        }
        #expect(failure { _ = try resource("https://h/api", metadata("https://h/api", ["http://127.0.0.1:9"])) } != nil)
        let local = "http://127.0.0.1:9700/api"
        #expect(try resource(local, metadata(local, ["http://127.0.0.1:9"])).issuer == "http://127.0.0.1:9")
    }

    @Test func aMissingEndpointIsAFailureOnlyWhenItIsNeeded() throws {
        let found = try AuthorizationServer(
            Array("{\"issuer\":\"https://as.example\"}".utf8), for: "https://as.example")
        let missing = failure { _ = try found.required(\.token, "token") }
        #expect(missing?.text.contains("token endpoint") == true)
    }

    @Test("RFC 7636: a server that knows only the plain method is refused")
    func onlyPlainIsRefused() throws {
        #expect(throws: FetchFailure.self) { try server(["code_challenge_methods_supported": ["plain"]]) }
        #expect(throws: Never.self) { try server(["code_challenge_methods_supported": ["plain", "S256"]]) }
    }

    @Test(arguments: [
        (["client_secret_post"], true), (["client_secret_basic", "client_secret_post"], false), ([], false),
        (["private_key_jwt"], false),
    ])
    func theSecretIsInTheBodyOnlyIfTheServerTakesNothingElse(methods: [String], isInBody: Bool) throws {
        let found = try server(["token_endpoint_auth_methods_supported": .array(methods.map { .string($0) })])
        #expect(found.takesSecretInBody == isInBody)
        let request = OAuthRequest(
            try found.required(\.token, "token"), form: [("a", secret("b"))],
            client: OAuthClient(id: "m:e", secret: secret("p w%")), found)
        #expect(request.form["client_secret"] == (isInBody ? "p w%" : nil))
        // RFC 6749 section 2.3.1: both parts are encoded as in a form.
        #expect(request.authorization?.revealed == (isInBody ? nil : basic("m%3Ae", "p%20w%25")))
    }

    @Test func aPublicClientSendsItsIDInTheBody() throws {
        let found = try server()
        let request = OAuthRequest(
            try found.required(\.token, "token"), form: [], client: OAuthClient(id: "me", secret: nil), found)
        #expect(request.form == ["client_id": "me"] && request.authorization == nil && !request.isDocument)
    }

    @Test func theOtherPropertiesAreRead() throws {
        #expect(try server(["authorization_response_iss_parameter_supported": true]).sendsIssuer)
        #expect(try server(["dpop_signing_alg_values_supported": ["RS256", "ES256"]]).offersDPoP)
        #expect(try !server(["dpop_signing_alg_values_supported": ["RS256"]]).offersDPoP)
    }

    // MARK: Resources

    private func resource(_ url: String, _ json: JSON) throws -> ProtectedResource {
        try ProtectedResource(json.serialized(), for: FetchURL(url))
    }

    private func metadata(_ resource: String, _ servers: [String] = ["https://as.example"]) -> JSON {
        [
            "resource": .string(resource), "authorization_servers": .array(servers.map { .string($0) }),
            "scopes_supported": ["write", "read"],
        ]
    }

    @Test(arguments: [
        ("https://h/api", "https://h/api"), ("https://h/api", "https://h/api/x/y"), ("https://h", "https://h/api"),
        ("https://h/", "https://h/api"), ("https://H:443/api", "https://h/api"), ("https://h/api/", "https://h/api/x"),
    ])
    func aResourceIsTheRequestedURLOrAboveIt(named: String, url: String) throws {
        let found = try resource(url, metadata(named))
        #expect(found.identifier == named, "sent as the server writes it")
        #expect(found.issuer == "https://as.example" && found.scopes == ["write", "read"])
    }

    @Test(
        "Rule K7: the metadata of another resource are refused",
        arguments: [
            ("https://h/api/x", "https://h/api"), ("https://h/ap", "https://h/api"),
            ("https://h/api", "https://h/apix"),
            ("https://other/api", "https://h/api"), ("http://h/api", "https://h/api"),
            ("https://h:8443/api", "https://h/api"), ("no URL", "https://h/api"), ("", "https://h/api"),
            ("https://h/api#x", "https://h/api"),
        ])
    func anotherResourceIsRefused(named: String, url: String) {
        #expect(failure { _ = try resource(url, metadata(named)) }?.kind == .loginFailed)
    }

    @Test(arguments: [[], ["http://as.example"], ["as.example"], ["ftp://as.example", "https://as.example"]])
    func aResourceWithoutASecureServerIsRefused(servers: [String]) {
        #expect(failure { _ = try resource("https://h/api", metadata("https://h/api", servers)) }?.kind == .loginFailed)
    }
}
