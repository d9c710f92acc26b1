import COpenSSL
import Glibc
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// Verification of servers, and the reports about those that do not verify.
@Suite(.timed) struct ServerTrustTests {
    private static let authority = TestCertificate("Test CA", isAuthority: true)

    /// Makes one exchange with a server that presents `certificate`, with an engine that trusts the tests' authority.
    private func exchange(
        _ certificate: TestCertificate, host: String = "127.0.0.1", _ options: TLSServer.Options = .init(),
        trust: TrustPolicy = .verify, identity: ConnectionIdentity = .none
    ) async throws -> (outcome: TransferPort.Outcome, heard: String) {
        let server = TLSServer(certificate, options)
        defer { server.stop() }
        let trusted = try TemporaryFile(Self.authority.pem)
        defer { trusted.remove() }
        let engine = try RemoteEngine(caFile: trusted.path)
        defer { engine.shutDown() }
        var request = request("https://\(host):\(server.port)/", authorization: "Basic c2VjcmV0")
        request.trust = trust
        request.identity = identity
        return (await engine.exchange(request), server.heard.joined())
    }

    private static func leaf(
        _ names: String = "IP:127.0.0.1", validity: ClosedRange<Int> = -3600...3600, key: TestCertificate.Key = .curve,
        issuer: TestCertificate? = authority
    ) -> TestCertificate {
        TestCertificate("127.0.0.1", names: names, issuer: issuer, validity: validity, key: key)
    }

    @Test(arguments: ["127.0.0.1", "localhost"])
    func aCertificateThatVerifiesIsAccepted(host: String) async throws {
        let names = host == "localhost" ? "DNS:other.example,DNS:localhost" : "IP:127.0.0.1"
        let (outcome, heard) = try await exchange(Self.leaf(names), host: host)
        #expect(outcome.text == "ok")
        #expect(heard.contains("Authorization: Basic c2VjcmV0\r\n"))
    }

    private static let wrong: [(TestCertificate, Set<ServerTrustFacts.Problem>)] = [
        (leaf(issuer: nil), [.selfSigned]),
        (leaf(issuer: TestCertificate("Other CA", isAuthority: true)), [.untrustedIssuer]),
        (leaf(validity: -7200 ... -3600), [.expired]),
        (leaf(validity: 3600...7200), [.notYetValid]),
        (leaf("DNS:other.example,IP:127.0.0.2"), [.hostMismatch]),
        // 127.0.0.1 in the subject is ignored, and so is an address written as a DNS name.
        (leaf(""), [.hostMismatch]),
        (leaf("DNS:127.0.0.1"), [.hostMismatch]),
        (leaf(key: .weakRSA), [.weakKey]),
        (leaf("DNS:x", validity: -7200 ... -3600, issuer: nil), [.selfSigned, .expired, .hostMismatch]),
    ]

    @Test(
        "Rules L6 and C7: each problem of a certificate has its own code, and nothing is sent", arguments: wrong.indices
    )
    func certificateProblemsAreReportedAndNothingIsSent(index: Int) async throws {
        let (certificate, problems) = Self.wrong[index]
        let (outcome, heard) = try await exchange(certificate)
        let failure = try #require(outcome.failure)
        #expect(failure.kind == .serverNotTrusted)
        #expect(failure.serverTrust?.problems == problems)
        #expect(failure.serverTrust?.chain.first?.pem == certificate.pem)
        #expect(heard.isEmpty)
    }

    @Test("Rule C7: an address, a partial wildcard or a longer name does not match a host name")
    func theNameOfAnAddressIsNotTheNameOfAHost() async throws {
        for names in ["IP:127.0.0.1", "DNS:*", "DNS:local*", "DNS:localhost.example"] {
            let (outcome, _) = try await exchange(Self.leaf(names), host: "localhost")
            #expect(outcome.failure?.serverTrust?.problems == [.hostMismatch])
        }
    }

    @Test func theFactsAreThoseOfTheCertificates() async throws {
        let certificate = Self.leaf("DNS:a.example,IP:10.0.0.1,IP:fe80::1,email:x@y", issuer: nil)
        let facts = try #require(try await exchange(certificate).outcome.failure?.serverTrust?.chain.first)
        #expect(facts.subject == #"CN=127.0.0.1,O=Watchword\, Tests"#)
        #expect(facts.issuer == facts.subject)
        #expect(facts.subjectAltNames == ["DNS:a.example", "IP:10.0.0.1", "IP:fe80:0:0:0:0:0:0:1"])
        #expect(facts.notBefore.utf8.count == 20 && facts.notBefore < facts.notAfter && facts.notAfter.hasSuffix("Z"))
        #expect(facts.sha256.count == 32 && facts.spkiSha256.count == 32 && facts.sha256 != facts.spkiSha256)
    }

    @Test func theWholeChainIsReported() async throws {
        let (outcome, heard) = try await exchange(Self.leaf(), trust: .ask)
        let facts = try #require(outcome.failure?.serverTrust)
        #expect(facts.problems.isEmpty)
        #expect(facts.chain.map(\.pem).last == Self.authority.pem && facts.chain.count == 2)
        #expect(heard.isEmpty)
    }

    @Test("Rule L3: a request that asks about the certificate uses a new connection")
    func aRequestThatAsksAboutTheCertificateUsesANewConnection() async throws {
        let server = TLSServer(Self.leaf())
        defer { server.stop() }
        let trusted = try TemporaryFile(Self.authority.pem)
        defer { trusted.remove() }
        let engine = try RemoteEngine(caFile: trusted.path)
        defer { engine.shutDown() }
        var request = request("https://127.0.0.1:\(server.port)/")
        #expect(await engine.exchange(request).text == "ok")
        request.trust = .ask
        #expect(await engine.exchange(request).failureKind == .serverNotTrusted)
        request.trust = .verify
        #expect(await engine.exchange(request).text == "ok")
        #expect(server.heard.map(\.isEmpty) == [false, true])
    }

    @Test func exactlyOneLeafIsAcceptedDespiteAnyProblem() async throws {
        let certificate = Self.leaf("DNS:x", validity: -7200 ... -3600, issuer: nil)
        let refused = try await exchange(certificate).outcome.failure
        let key = try #require(refused?.serverTrust?.chain.first?.spkiSha256)
        let accepted = try await exchange(certificate, trust: .leaf(spkiSha256: key), identity: .number(1))
        #expect(accepted.outcome.text == "ok")
        for wrong in [[], Array(repeating: 0, count: 32), Array(key.dropLast())] as [[UInt8]] {
            let other = try await exchange(certificate, trust: .leaf(spkiSha256: wrong), identity: .number(1))
            #expect(other.outcome.failure?.serverTrust?.problems == [.selfSigned, .expired, .hostMismatch])
            #expect(other.heard.isEmpty)
        }
        // Without an identity, other requests would use the connection.
        let shared = try await exchange(certificate, trust: .leaf(spkiSha256: key))
        #expect(shared.outcome.failureKind == .internalError && shared.heard.isEmpty)
    }

    @Test func aWeakKeyWithAnExceptionIsAccepted() async throws {
        let certificate = Self.leaf(key: .weakRSA)
        let facts = try await exchange(certificate).outcome.failure?.serverTrust
        let key = try #require(facts?.chain.first?.spkiSha256)
        #expect(
            try await exchange(certificate, trust: .leaf(spkiSha256: key), identity: .number(1)).outcome.text == "ok")
    }

    @Test("Rules L2 and C8: an exception serves no other identity")
    func anExceptionServesNoOtherIdentity() async throws {
        let server = TLSServer(Self.leaf(issuer: nil))
        defer { server.stop() }
        try await withEngine { engine in
            var request = request("https://127.0.0.1:\(server.port)/")
            let key = try #require(await engine.exchange(request).failure?.serverTrust?.chain.first?.spkiSha256)
            request.trust = .leaf(spkiSha256: key)
            request.identity = .number(1)
            #expect(await engine.exchange(request).text == "ok")
            request.trust = .verify
            for identity in [.none, .number(1), .number(2)] as [ConnectionIdentity] {
                request.identity = identity
                #expect(await engine.exchange(request).failure?.serverTrust?.problems == [.selfSigned])
            }
        }
        #expect(server.heard.filter { !$0.isEmpty }.count == 1)
    }

    @Test("Rule C8: a changed key raises a new challenge")
    func aLeafThatHasChangedIsAskedAboutAgain() async throws {
        // The port stays reserved between the two servers.
        let (holder, port) = Loopback.reserve()
        defer { close(holder) }
        let server = TLSServer(Self.leaf(issuer: nil), port: port)
        defer { server.stop() }
        var request = request("https://127.0.0.1:\(port)/")
        request.identity = .number(1)
        try await withEngine { engine in
            let key = try #require(await engine.exchange(request).failure?.serverTrust?.chain.first?.spkiSha256)
            request.trust = .leaf(spkiSha256: key)
            #expect(await engine.exchange(request).text == "ok")
            server.stop()
            engine.forget(.number(1))
            // The names and the host are the same; only the key differs.
            let other = TLSServer(Self.leaf(issuer: nil), port: port)
            defer { other.stop() }
            let failure = try #require(await engine.exchange(request).failure)
            #expect(failure.kind == .serverNotTrusted && failure.serverTrust?.chain.first?.spkiSha256 != key)
            #expect(other.heard == [""])
        }
    }

    /// Separate connections are sufficient for an identity; only a connection-level login requires HTTP/1.1.
    @Test func anIdentityAloneDoesNotRuleOutHTTP2() async throws {
        for (identity, start) in [(ConnectionIdentity.none, "PRI * HTTP/2.0\r\n"), (.number(1), "PRI * HTTP/2.0\r\n")] {
            let server = TLSServer(Self.leaf(), TLSServer.Options(prefersHTTP2: true))
            defer { server.stop() }
            try await withEngine(trusting: Self.authority) { engine in
                var request = request("https://127.0.0.1:\(server.port)/")
                request.identity = identity
                let id = engine.start(request) { _ in }
                // The server does not respond.
                try await until { server.heard.joined().utf8.count >= start.utf8.count }
                #expect(server.heard.joined().hasPrefix(start))
                engine.cancel(id)
            }
        }
    }

    @Test("Rules L3 and N9: a connection-level login uses HTTP/1.1 where the server prefers HTTP/2")
    func aConnectionLevelLoginUsesHTTP11() async throws {
        let server = TLSServer(Self.leaf(), TLSServer.Options(prefersHTTP2: true))
        defer { server.stop() }
        let trusted = try TemporaryFile(Self.authority.pem)
        defer { trusted.remove() }
        let engine = try RemoteEngine(caFile: trusted.path)
        defer { engine.shutDown() }
        var request = request("https://127.0.0.1:\(server.port)/")
        request.identity = .number(1)
        request.handshake = Handshake(
            scheme: .ntlm, target: .origin, user: "alice", domain: "DOM", password: secret("geheim"))
        _ = await engine.exchange(request)
        #expect(server.heard.joined().hasPrefix("GET / HTTP/1.1\r\n"))
    }

    @Test("Rule C10: TLS versions before 1.2 are refused", arguments: [TLS1_VERSION, TLS1_1_VERSION])
    func oldVersionsAreRefused(version: Int32) async throws {
        let (outcome, heard) = try await exchange(Self.leaf(), TLSServer.Options(version: version))
        #expect(outcome.failureKind == .tlsFailed && heard.isEmpty)
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func newVersionsAreAccepted(version: Int32) async throws {
        #expect(try await exchange(Self.leaf(), TLSServer.Options(version: version)).outcome.text == "ok")
    }
}
