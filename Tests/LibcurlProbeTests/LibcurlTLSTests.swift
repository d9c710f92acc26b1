import CCurl
import COpenSSL
import TestServers
import Testing

/// Behaviour of libcurl that `TLSRecord` relies on. A failure means that libcurl has changed: review the decision that it names.
@Suite struct LibcurlTLSTests {
    private static let leaf = TestCertificate("127.0.0.1", names: "DNS:other.example")

    private func probe(_ server: TLSServer) -> Probe {
        let probe = Probe("https://127.0.0.1:\(server.port)/")
        probe.set(CURLOPT_PROXY, "")
        probe.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        probe.prepare = { SSL_CTX_set_cert_verify_callback($0, { _, _ in 1 }, nil) }
        probe.watchContexts()
        return probe
    }

    @Test func theNameIsCheckedAfterTheCallbacks() {
        let server = TLSServer(Self.leaf)
        defer { server.stop() }
        #expect(
            probe(server).perform() == CURLE_PEER_FAILED_VERIFICATION,
            "A callback also decides about the name: review whether VERIFYHOST must be off")
        let other = probe(server)
        other.set(CURLOPT_SSL_VERIFYHOST, 0)
        #expect(other.perform() == CURLE_OK)
    }

    @Test func aReusedConnectionCallsNoCallback() {
        let server = TLSServer(Self.leaf)
        defer { server.stop() }
        let probe = probe(server)
        probe.set(CURLOPT_SSL_VERIFYHOST, 0)
        #expect(probe.perform() == CURLE_OK && probe.perform() == CURLE_OK)
        #expect(
            probe.contexts == 1 && server.heard.count == 1,
            "Reused connections call the callbacks: review whether every identity needs its own connections")
    }

    @Test("Rule C4: libcurl would accept a certificate request after the handshake")
    func libcurlAllowsCertificateRequestsAfterTheHandshake() {
        let server = TLSServer(Self.leaf, TLSServer.Options(version: TLS1_3_VERSION, asksLate: true))
        defer { server.stop() }
        let client = TestCertificate("client")
        let probe = probe(server)
        probe.set(CURLOPT_SSL_VERIFYHOST, 0)
        probe.prepare = { context in
            SSL_CTX_set_cert_verify_callback(context, { _, _ in 1 }, nil)
            SSL_CTX_use_cert_and_key(context, client.certificate, client.key, nil, 1)
        }
        _ = probe.perform()
        #expect(
            server.heard.first?.contains("late certificate") == true,
            "libcurl no longer offers post-handshake authentication: `TLSRecord.attach` need not disable it")
    }
}
