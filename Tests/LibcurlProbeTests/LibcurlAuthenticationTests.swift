import CCurl
import COpenSSL
import Glibc
import TestServers
import Testing

/// Behaviour of libcurl because of which the broker logs in itself. A failure means that libcurl has changed: review the
/// decision that the failing line names.
@Suite(.serialized) struct LibcurlAuthenticationTests {
    // CURLAUTH_ANY and CURLAUTH_DIGEST are macros with casts, which Swift does not see.
    private static let any = ~(1 << 4)
    private static let digest = 1 << 1

    private static let welcome = ScriptedServer.Reply.bytes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    private func refusal(_ field: String) -> ScriptedServer.Reply {
        .bytes("HTTP/1.1 401 No\r\nWWW-Authenticate: \(field)\r\nContent-Length: 0\r\n\r\n")
    }

    private func logins(_ server: ScriptedServer) -> [Substring] {
        server.heard.joined().split(separator: "\r\n").filter { $0.hasPrefix("Authorization: ") }
    }

    private func probe(_ server: ScriptedServer, _ schemes: Int) -> Probe {
        let probe = Probe(server.url)
        probe.set(CURLOPT_PROXY, "")
        probe.set(CURLOPT_USERPWD, "user:password")
        probe.set(CURLOPT_HTTPAUTH, schemes)
        return probe
    }

    @Test("Rule L8: libcurl's own parser reads quoted text as a challenge")
    func libcurlParsesAQuotedTextAsAChallenge() {
        let server = ScriptedServer([refusal(#"Newauth realm="foo, Basic realm=evil""#), Self.welcome])
        defer { server.stop() }
        let probe = probe(server, Self.any)
        _ = probe.perform()
        #expect(
            logins(server) == ["Authorization: Basic dXNlcjpwYXNzd29yZA=="],
            "libcurl parses quoted strings in challenges: review whether the core must parse challenges itself")
    }

    @Test func libcurlAnswersStaleEndlessly() {
        let stale = refusal(#"Digest realm="x", nonce="y", qop="auth", stale=true"#)
        let server = ScriptedServer(Array(repeating: stale, count: 30))
        defer { server.stop() }
        _ = probe(server, Self.digest).perform()
        #expect(
            logins(server).count >= 25,
            "libcurl stops when nonces are stale repeatedly: review whether Digest must be computed in the core")
    }

    @Test func libcurlsSHA512With256BitsIsSHA256() throws {
        let server = ScriptedServer([refusal(#"Digest realm="r", nonce="n", algorithm=SHA-512-256"#), Self.welcome])
        defer { server.stop() }
        let probe = probe(server, Self.digest)
        _ = probe.perform()
        let login = try #require(logins(server).first)
        func response(_ digest: OpaquePointer?) -> String {
            func hash(_ text: String) -> String {
                var bytes = [UInt8](repeating: 0, count: 64)
                var count: UInt32 = 0
                EVP_Digest(text, text.utf8.count, &bytes, &count, digest, nil)
                return bytes.prefix(Int(count)).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
            }
            return hash("\(hash("user:r:password")):n:\(hash("GET:/"))")
        }
        #expect(!login.contains(response(EVP_sha512_256())))
        #expect(
            login.contains(response(EVP_sha256())),
            "libcurl computes SHA-512-256 differently: review whether Digest must be computed in the core")
    }

    /// The test runs in its own process, because many threads read the environment of this one.
    @Test(.startsProcess) func theEnvironmentChoosesTheProxyOfLibcurl() async {
        await #expect(
            processExitsWith: .success,
            "libcurl ignores http_proxy: look again at whether the environment must be cleaned, and PROXY always set"
        ) {
            let server = ScriptedServer([.bytes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")])
            setenv("http_proxy", server.url, 1)
            let isSent = Probe("http://o.invalid/").perform() == CURLE_OK
            let isProxied = server.heard.first?.hasPrefix("GET http://o.invalid/ ") == true
            exit(isSent && isProxied ? EXIT_SUCCESS : EXIT_FAILURE)
        }
    }

    @Test func libcurlsNTLMWidensBytes() throws {
        let challenge = "TlRMTVNTUAACAAAAAAAAADAAAAAFgogAAQIDBAUGBwgAAAAAAAAAAAQABAAwAAAAAAAAAA=="
        let server = ScriptedServer([refusal("NTLM \(challenge)"), Self.welcome])
        defer { server.stop() }
        let probe = Probe(server.url)
        probe.set(CURLOPT_PROXY, "")
        probe.set(CURLOPT_HTTPAUTH, Int(watchword_curl_auth_ntlm))
        probe.set(CURLOPT_USERPWD, "ä:password")
        _ = probe.perform()
        let text = try #require(logins(server).last).dropFirst("Authorization: NTLM ".count)
        var bytes = [UInt8](repeating: 0, count: text.utf8.count)
        EVP_DecodeBlock(&bytes, Array(text.utf8), Int32(text.utf8.count))
        #expect(
            bytes.indices.contains { bytes[$0...].starts(with: [0xC3, 0, 0xA4, 0]) },
            "libcurl expects UTF-8 for NTLM: review NTLMText, which passes ISO 8859-1")
    }
}
