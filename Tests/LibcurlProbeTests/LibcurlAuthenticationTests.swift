import CCurl
import COpenSSL
import Glibc
import TestServers
import Testing

/// What the broker does itself because libcurl does it otherwise. A failure means that libcurl has changed: look again at the
/// decision that the failing line names.
@Suite(.serialized) struct LibcurlAuthenticationTests {
    // CURLAUTH_ANY and CURLAUTH_DIGEST are macros with casts, which Swift does not see.
    private static let any = ~(1 << 4)
    private static let digest = 1 << 1

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

    @Test func itsParserTakesAQuotedTextForAChallenge() {
        let server = ScriptedServer([refusal(#"Newauth realm="foo, Basic realm=evil""#), .hold])
        defer { server.stop() }
        let probe = probe(server, Self.any)
        probe.set(CURLOPT_TIMEOUT_MS, 1_000)
        _ = probe.perform()
        #expect(
            logins(server) == ["Authorization: Basic dXNlcjpwYXNzd29yZA=="],
            "libcurl reads challenges with their quotes: look again at whether the core must parse them by itself")
    }

    @Test func itAnswersStaleWithoutEnd() {
        let stale = refusal(#"Digest realm="x", nonce="y", qop="auth", stale=true"#)
        let server = ScriptedServer(Array(repeating: stale, count: 30))
        defer { server.stop() }
        _ = probe(server, Self.digest).perform()
        #expect(
            logins(server).count >= 25,
            "libcurl stops when a nonce is stale again and again: look again at whether Digest is made in the core")
    }

    @Test func itsSHA512With256BitsIsSHA256() throws {
        let server = ScriptedServer([refusal(#"Digest realm="r", nonce="n", algorithm=SHA-512-256"#), .hold])
        defer { server.stop() }
        let probe = probe(server, Self.digest)
        probe.set(CURLOPT_TIMEOUT_MS, 1_000)
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
            "libcurl computes SHA-512-256 otherwise than before: look again at whether Digest is made in the core")
    }

    @Test func theEnvironmentChoosesItsProxy() {
        let server = ScriptedServer([.bytes("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")])
        defer { server.stop() }
        setenv("http_proxy", server.url, 1)
        defer { unsetenv("http_proxy") }
        let probe = Probe("http://o.invalid/")
        #expect(
            probe.perform() == CURLE_OK && server.heard.first?.hasPrefix("GET http://o.invalid/ ") == true,
            "libcurl ignores http_proxy: look again at whether the environment must be cleaned, and PROXY always set")
    }

    @Test func itsNTLMWidensBytes() throws {
        let challenge = "TlRMTVNTUAACAAAAAAAAADAAAAAFgogAAQIDBAUGBwgAAAAAAAAAAAQABAAwAAAAAAAAAA=="
        let server = ScriptedServer([refusal("NTLM \(challenge)"), .hold])
        defer { server.stop() }
        let probe = Probe(server.url)
        probe.set(CURLOPT_PROXY, "")
        probe.set(CURLOPT_HTTPAUTH, Int(watchword_curl_auth_ntlm))
        probe.set(CURLOPT_USERPWD, "ä:password")
        probe.set(CURLOPT_TIMEOUT_MS, 1_000)
        _ = probe.perform()
        let text = try #require(logins(server).last).dropFirst("Authorization: NTLM ".count)
        var bytes = [UInt8](repeating: 0, count: text.utf8.count)
        EVP_DecodeBlock(&bytes, Array(text.utf8), Int32(text.utf8.count))
        #expect(
            bytes.indices.contains { bytes[$0...].starts(with: [0xC3, 0, 0xA4, 0]) },
            "libcurl reads UTF-8 for NTLM: look again at NTLMText, which gives it ISO 8859-1")
    }
}
