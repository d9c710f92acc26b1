import JSONText
import Testing

@testable import watchword

@Suite struct VerboseTests {
    @Test func requestAndResponseAreShownWithoutSecrets() {
        let request: JSON = [
            "method": "GET", "url": "http://h/x", "target": "/x",
            "headers": .array([
                .array(["Host", "h"]), .array(["Authorization", "Basic [redacted]"]), .array(["Cookie", "a=secret"]),
                .array(["X-Api-Key", "secret"]),
            ]), "auth": ["authenticationMethod": "httpBasic", "source": "keyring", "user": "bob"],
        ]
        #expect(
            Verbose.lines("fetch/request", request) == [
                "* Logging in to the server with Basic as \"bob\" (from the keyring)", "> GET /x HTTP/1.1", "> Host: h",
                "> Authorization: Basic [redacted]", "> Cookie: [redacted]", "> X-Api-Key: [redacted]", ">",
            ])
        let response: JSON = [
            "status": 200, "reason": "Fine\u{1B}", "httpVersion": "1.1",
            "headers": .array([.array(["Set-Cookie", "a=secret"]), .array(["ETag", "x"])]),
        ]
        #expect(
            Verbose.lines("fetch/response", response)
                == ["< HTTP/1.1 200 Fine\u{FFFD}", "< Set-Cookie: [redacted]", "< ETag: x", "<"])
    }

    @Test(arguments: [
        ("session", "from the session"), ("keyring", "from the keyring"), ("url", "from the URL"),
        ("explicit", "from the command line"), ("client", "typed at the terminal"), ("agent", "from the desktop agent"),
        ("ambient", "from the Kerberos ticket"), ("command", "from the configured command"),
        ("netrc", "from the netrc file"),
    ])
    func theSourceOfALoginIsShown(source: String, words: String) {
        let result: JSON = ["auth": ["authenticationMethod": "httpDigest", "source": .string(source), "user": "bob"]]
        #expect(
            Verbose.lines("fetch/completed", result)
                == ["* The server accepted the login with Digest as \"bob\" (\(words))"])
        #expect(Verbose.lines("fetch/completed", ["auth": .null]) == [])
    }

    @Test(arguments: [
        "authorization", "Cookie", "SET-COOKIE", "X-Auth-Token", "X-API-Key", "Client-Secret",
        "Proxy-Authentication-Info", "X-Auth", "Ocp-Apim-Subscription-Key",
    ])
    func secretFieldsAreKnown(name: String) { #expect(Verbose.isSecret(name)) }

    @Test func challengesAreShownWithoutTokens() {
        let headers: JSON = .array([
            .array(["WWW-Authenticate", "Negotiate YII=, NTLM,Basic realm=\"a b\""]),
            .array(["Proxy-Authenticate", "ntlm  TlRM"]),
            .array(["WWW-Authenticate", "Negotiate, Digest nonce=\"x\""]),
        ])
        #expect(
            Verbose.lines("fetch/response", ["status": 401, "reason": "No", "httpVersion": "1.1", "headers": headers])
                == [
                    "< HTTP/1.1 401 No", "< WWW-Authenticate: Negotiate [redacted], NTLM,Basic realm=\"a b\"",
                    "< Proxy-Authenticate: ntlm  [redacted]", "< WWW-Authenticate: Negotiate, Digest nonce=\"x\"", "<",
                ])
    }
}
