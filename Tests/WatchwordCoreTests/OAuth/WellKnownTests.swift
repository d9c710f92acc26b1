import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The places of metadata: RFC 9728 section 3.1, RFC 8414 section 3.1, OpenID Connect Discovery 1.0 section 4.
@Suite struct WellKnownTests {
    @Test(arguments: [
        ("https://h", ["https://h/.well-known/oauth-protected-resource"]),
        ("https://h/", ["https://h/.well-known/oauth-protected-resource"]),
        (
            "https://h:8443/t1/",
            [
                "https://h:8443/.well-known/oauth-protected-resource/t1",
                "https://h:8443/.well-known/oauth-protected-resource",
            ]
        ),
        (
            "https://h/a?x=1",
            ["https://h/.well-known/oauth-protected-resource/a?x=1", "https://h/.well-known/oauth-protected-resource"]
        ),
        (
            "https://h/a//",
            ["https://h/.well-known/oauth-protected-resource/a/", "https://h/.well-known/oauth-protected-resource"]
        ),
    ])
    func aResourceDescribesItselfForItsPathThenAtTheRoot(resource: String, places: [String]) throws {
        #expect(try WellKnown.resourceMetadata(of: FetchURL(resource)).map(\.text) == places)
    }

    @Test(arguments: [
        (
            "https://h",
            ["https://h/.well-known/oauth-authorization-server", "https://h/.well-known/openid-configuration"]
        ),
        (
            "https://h/",
            ["https://h/.well-known/oauth-authorization-server", "https://h/.well-known/openid-configuration"]
        ),
        (
            "https://h:8443/t1/",
            [
                "https://h:8443/.well-known/oauth-authorization-server/t1",
                "https://h:8443/.well-known/openid-configuration/t1",
                "https://h:8443/t1/.well-known/openid-configuration",
            ]
        ),
        (
            "http://127.0.0.1:4593/api/oidc",
            [
                "http://127.0.0.1:4593/.well-known/oauth-authorization-server/api/oidc",
                "http://127.0.0.1:4593/.well-known/openid-configuration/api/oidc",
                "http://127.0.0.1:4593/api/oidc/.well-known/openid-configuration",
            ]
        ),
    ])
    func aServerDescribesItselfAtTwoOrThreePlaces(issuer: String, places: [String]) throws {
        #expect(try WellKnown.serverMetadata(of: FetchURL(issuer)).map(\.text) == places)
    }
}
