import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// How the authorization server is found: configuration, RFC 9728, RFC 8414.
@Suite struct TokenMachineDiscoveryTests {
    private let metadata: JSON = [
        "resource": "https://api.example/v1", "authorization_servers": ["https://as.example"],
        "scopes_supported": ["write", "read"],
    ]

    private func discovering(
        url: String = "https://api.example/v1/x", _ place: String? = nil, scopes: [String] = []
    ) throws -> TokenRun {
        try TokenRun(url: url) {
            ($0.issuer, $0.scopes) = (nil, scopes)
        } challenge: {
            $0.metadata = place
        }
    }

    // MARK: The issuer

    @Test func aConfiguredIssuerIsAskedAtOnce() throws {
        let run = try TokenRun { _ in
        } challenge: {
            $0.metadata = "https://evil.example/"
        }
        #expect(run.request?.url.text == "https://as.example/.well-known/oauth-authorization-server")
        #expect(run.request?.isDocument == true)
    }

    @Test func theChallengeNamesTheMetadata() throws {
        var run = try discovering("https://api.example/meta")
        #expect(run.request?.url.text == "https://api.example/meta")
        run.reply(metadata)
        #expect(run.request?.url.text == "https://as.example/.well-known/oauth-authorization-server")
    }

    @Test(
        "Rule K7: metadata at another origin are not fetched",
        arguments: [
            "https://evil.example/meta", "http://api.example/meta", "https://api.example:8443/meta", "/meta", "",
            "https://api.example@evil.example/",
        ])
    func metadataAtAnotherOriginAreNotFetched(place: String) throws {
        let run = try discovering(place)
        #expect(run.request == nil)
        #expect(run.failure?.kind == .loginFailed)
    }

    @Test func withoutAPlaceThePathThenTheRootAreTried() throws {
        var run = try discovering()
        #expect(run.request?.url.text == "https://api.example/.well-known/oauth-protected-resource/v1/x")
        run.reply(nil, status: 404)
        #expect(run.request?.url.text == "https://api.example/.well-known/oauth-protected-resource")
        run.reply(nil, status: 404)
        #expect(run.failure?.text.contains("set issuer in the configuration") == true)
    }

    @Test func aNamedPlaceIsTheOnlyOne() throws {
        var run = try discovering("https://api.example/meta")
        run.reply(nil, status: 404)
        #expect(run.failure?.kind == .loginFailed)
    }

    @Test func theMetadataNameResourceAndScopes() throws {
        var run = try discovering()
        run.reply(metadata)
        run.beginLogin()
        #expect(run.page["resource"] == "https://api.example/v1" && run.page["scope"] == "read write")
    }

    @Test func theConfigurationTakesPrecedence() throws {
        var run = try TokenRun {
            ($0.issuer, $0.resourceIndicator) = (nil, "urn:api")
        }
        run.reply(metadata)
        run.beginLogin()
        #expect(run.page["resource"] == "urn:api" && run.page["scope"] == "read")
    }

    @Test func metadataOfAnotherResourceEndTheSearch() throws {
        var run = try discovering()
        run.reply(metadata.adding(["resource": "https://other.example/v1"]))
        #expect(run.failure?.kind == .loginFailed && run.request == nil)
    }

    // MARK: The server

    @Test func threePlacesAreTriedForTheServer() throws {
        var run = try TokenRun { $0.issuer = "https://as.example/t" }
        #expect(run.request?.url.text == "https://as.example/.well-known/oauth-authorization-server/t")
        run.reply(nil, status: 404)
        #expect(run.request?.url.text == "https://as.example/.well-known/openid-configuration/t")
        run.reply(nil, status: 500)
        #expect(run.request?.url.text == "https://as.example/t/.well-known/openid-configuration")
        run.reply(serverMetadata.adding(["issuer": "https://as.example/t"]))
        #expect(run.commands == [.lookUp(run.machine.key)])
        #expect(
            run.machine.key == .init(resource: "https://api.example/v1", issuer: "https://as.example/t", clientID: "me")
        )
    }

    @Test func withoutMetadataThereIsNoLogin() throws {
        var run = try TokenRun()
        for _ in 0..<2 { run.reply(nil, status: 302) }
        #expect(run.failure?.text.contains("no metadata (status 302)") == true)
    }

    @Test(arguments: ["http://as.example", "as.example", "ftp://as.example", ""])
    func anIssuerIsReachedByHTTPS(issuer: String) throws {
        let run = try TokenRun { $0.issuer = issuer }
        #expect(run.failure?.kind == .loginFailed && run.request == nil)
    }

    @Test func aServerOnThisMachineNeedsNoTLS() throws {
        #expect(try TokenRun { $0.issuer = "http://127.0.0.1:4593" }.request?.url.origin.port == 4593)
    }

    @Test func anotherIssuerEndsTheSearch() throws {
        var run = try TokenRun()
        run.findServer(["issuer": "https://evil.example"])
        #expect(run.failure?.kind == .loginFailed && run.request == nil)
    }

    @Test func aFailureOfTheNetworkIsTheFailureOfTheSearch() throws {
        var runs = [try discovering(), try TokenRun()]
        for index in runs.indices {
            runs[index].failNetwork()
            #expect(runs[index].failure?.kind == .cannotConnect)
        }
    }
}
