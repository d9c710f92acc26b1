import COpenSSL
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// Whom the engine talks to, and what it tells of whom it does not.
@Suite(.timed) struct ServerTrustTests {
    private static let authority = TestCertificate("Test CA", isAuthority: true)

    /// One exchange with a server that shows `certificate`, by an engine that trusts the tests' authority.
    private func exchange(
        _ certificate: TestCertificate, host: String = "127.0.0.1", _ options: TLSServer.Options = .init(),
        trust: TrustPolicy = .verify, identity: ConnectionIdentity = .none, timeout: Duration = .seconds(60)
    ) async throws -> (outcome: TransferPort.Outcome, heard: String) {
        let server = TLSServer(certificate, options)
        defer { server.stop() }
        let trusted = try TemporaryFile(Self.authority.pem)
        defer { trusted.remove() }
        let engine = try RemoteEngine(caFile: trusted.path)
        defer { engine.shutDown() }
        var request = request("https://\(host):\(server.port)/", authorization: "Basic c2VjcmV0", timeout: timeout)
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
        // The subject says 127.0.0.1; it does not count. Nor does an address that is written as a name.
        (leaf(""), [.hostMismatch]),
        (leaf("DNS:127.0.0.1"), [.hostMismatch]),
        (leaf(key: .weakRSA), [.weakKey]),
        (leaf("DNS:x", validity: -7200 ... -3600, issuer: nil), [.selfSigned, .expired, .hostMismatch]),
    ]

    @Test(arguments: wrong.indices)
    func whatIsWrongIsToldAndNothingIsSent(index: Int) async throws {
        let (certificate, problems) = Self.wrong[index]
        let (outcome, heard) = try await exchange(certificate)
        let failure = try #require(outcome.failure)
        #expect(failure.kind == .serverNotTrusted)
        #expect(failure.serverTrust?.problems == problems)
        #expect(failure.serverTrust?.chain.first?.pem == certificate.pem)
        #expect(heard.isEmpty)
    }

    @Test func aNameOfAnAddressIsNoNameOfAHost() async throws {
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

    @Test func theChainIsToldToItsEnd() async throws {
        let (outcome, heard) = try await exchange(Self.leaf(), trust: .ask)
        let facts = try #require(outcome.failure?.serverTrust)
        #expect(facts.problems.isEmpty)
        #expect(facts.chain.map(\.pem).last == Self.authority.pem && facts.chain.count == 2)
        #expect(heard.isEmpty)
    }

    @Test func askingNeverUsesAConnectionThatIsThere() async throws {
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

    @Test func exactlyOneLeafIsAcceptedWhateverIsWrong() async throws {
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
        // Without an identity others would get the connection.
        let shared = try await exchange(certificate, trust: .leaf(spkiSha256: key))
        #expect(shared.outcome.failureKind == .internalError && shared.heard.isEmpty)
    }

    @Test func aWeakKeyIsAcceptedWhenItIsTheOne() async throws {
        let certificate = Self.leaf(key: .weakRSA)
        let facts = try await exchange(certificate).outcome.failure?.serverTrust
        let key = try #require(facts?.chain.first?.spkiSha256)
        #expect(
            try await exchange(certificate, trust: .leaf(spkiSha256: key), identity: .number(1)).outcome.text == "ok")
    }

    @Test func anExceptionIsOfNoUseToAnybodyElse() async throws {
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

    @Test func aLeafThatHasChangedIsAskedAboutAgain() async throws {
        let server = TLSServer(Self.leaf(issuer: nil))
        var request = request("https://127.0.0.1:\(server.port)/")
        request.identity = .number(1)
        try await withEngine { engine in
            let key = try #require(await engine.exchange(request).failure?.serverTrust?.chain.first?.spkiSha256)
            request.trust = .leaf(spkiSha256: key)
            #expect(await engine.exchange(request).text == "ok")
            server.stop()
            engine.forget(.number(1))
            // The same names and the same host: only the key is another.
            let other = TLSServer(Self.leaf(issuer: nil), port: server.port)
            defer { other.stop() }
            let failure = try #require(await engine.exchange(request).failure)
            #expect(failure.kind == .serverNotTrusted && failure.serverTrust?.chain.first?.spkiSha256 != key)
            #expect(other.heard == [""])
        }
    }

    /// Its own connections are enough to keep an identity apart; a login of the connection is another matter.
    @Test func anIdentityAloneDoesNotRuleOutHTTP2() async throws {
        for (identity, start) in [(ConnectionIdentity.none, "PRI * HTTP/2.0\r\n"), (.number(1), "PRI * HTTP/2.0\r\n")] {
            let heard = try await exchange(
                Self.leaf(), TLSServer.Options(prefersHTTP2: true), identity: identity, timeout: .seconds(3)
            ).heard
            #expect(heard.hasPrefix(start))
        }
    }

    @Test(arguments: [TLS1_VERSION, TLS1_1_VERSION])
    func oldVersionsAreRefused(version: Int32) async throws {
        let (outcome, heard) = try await exchange(Self.leaf(), TLSServer.Options(version: version))
        #expect(outcome.failureKind == .tlsFailed && heard.isEmpty)
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func newVersionsAreNot(version: Int32) async throws {
        #expect(try await exchange(Self.leaf(), TLSServer.Options(version: version)).outcome.text == "ok")
    }
}
