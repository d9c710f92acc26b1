import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// TLS to the proxy, and within it TLS to the origin: each has its own certificate.
@Suite(.timed) struct ProxyTrustTests {
    private static let authority = TestCertificate("Test CA", isAuthority: true)
    private static let good = TestCertificate("127.0.0.1", names: "IP:127.0.0.1", issuer: authority)
    private static let expired = TestCertificate(
        "127.0.0.1", names: "IP:127.0.0.1", issuer: authority, validity: -7200 ... -3600)

    private func exchange(
        proxy: TestCertificate, origin: TestCertificate, trust: TrustPolicy = .verify
    ) async throws -> (outcome: TransferPort.Outcome, proxy: [String], origin: [String]) {
        let server = TLSServer(origin)
        let relay = TLSServer(proxy, TLSServer.Options(tunnel: server.port))
        defer {
            server.stop()
            relay.stop()
        }
        return try await withEngine(trusting: Self.authority) { engine in
            var request = request("https://127.0.0.1:\(server.port)/")
            request.proxy = ProxyRequest(kind: .https, host: "127.0.0.1", port: relay.port)
            request.trust = trust
            request.identity = .number(1)
            return (await engine.exchange(request), relay.heard, server.heard)
        }
    }

    @Test func bothAreVerified() async throws {
        let (outcome, proxy, origin) = try await exchange(proxy: Self.good, origin: Self.good)
        #expect(outcome.text == "ok")
        #expect(proxy[0].hasPrefix("CONNECT 127.0.0.1:") && origin[0].hasPrefix("GET / "))
    }

    @Test func anUntrustedProxyReceivesNothing() async throws {
        let (outcome, proxy, origin) = try await exchange(proxy: Self.expired, origin: Self.good)
        let failure = try #require(outcome.failure)
        #expect(failure.kind == .tlsFailed && failure.cause == .proxyTLSFailed)
        #expect(failure.serverTrust?.problems == [.expired])
        #expect(failure.serverTrust?.chain.first?.pem == Self.expired.pem)
        #expect(proxy == [""] && origin.isEmpty)
    }

    @Test func anOriginBehindATrustedProxyIsStillTheOrigin() async throws {
        let (outcome, _, origin) = try await exchange(proxy: Self.good, origin: Self.expired)
        let failure = try #require(outcome.failure)
        #expect(failure.kind == .serverNotTrusted && failure.cause == nil)
        #expect(failure.serverTrust?.problems == [.expired] && origin == [""])
    }

    @Test func anExceptionIsForTheOriginOnly() async throws {
        let key = try #require(
            await exchange(proxy: Self.good, origin: Self.expired).outcome.failure?.serverTrust?.chain.first?.spkiSha256
        )
        let pinned = try await exchange(
            proxy: Self.good, origin: Self.expired, trust: .leaf(spkiSha256: key))
        #expect(pinned.outcome.text == "ok")
        let proxy = try await exchange(
            proxy: Self.expired, origin: Self.expired, trust: .leaf(spkiSha256: key))
        #expect(proxy.outcome.failure?.cause == .proxyTLSFailed && proxy.proxy == [""])
    }
}
