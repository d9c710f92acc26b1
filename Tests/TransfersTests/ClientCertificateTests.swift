import COpenSSL
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// The certificates that a server gets if it requests one, and the reports about them.
@Suite(.timed) struct ClientCertificateTests {
    private static let authority = TestCertificate("Test CA", isAuthority: true)
    private static let leaf = TestCertificate("127.0.0.1", names: "IP:127.0.0.1", issuer: authority)
    private static let clients = TestCertificate("Client CA", isAuthority: true)
    private static let client = TestCertificate("client", issuer: clients)
    private static let stranger = TestCertificate("client", issuer: TestCertificate("Client CA", isAuthority: true))
    private static let versions = [TLS1_2_VERSION, TLS1_3_VERSION]
    private static let names = ClientCertificateRequest(distinguishedNames: [#"CN=Client CA,O=Watchword\, Tests"#])

    private func request(_ server: TLSServer, _ certificate: TestCertificate?) -> TransferRequest {
        var request = TransfersTests.request("https://127.0.0.1:\(server.port)/")
        request.identity = .number(1)
        request.clientCertificate = certificate.map {
            ClientCertificate(certificate: .bytes(secret($0.pem)), privateKey: .bytes(secret($0.keyPEM())))
        }
        return request
    }

    private func server(_ version: Int32, isOptional: Bool = false) -> TLSServer {
        TLSServer(
            Self.leaf,
            TLSServer.Options(clientIssuer: Self.clients, isClientOptional: isOptional, version: version))
    }

    @Test(arguments: versions)
    func theCertificateIsAcceptedAndTheConnectionReused(version: Int32) async throws {
        let server = server(version)
        defer { server.stop() }
        try await withEngine(trusting: Self.authority) { engine in
            for _ in 0..<2 {
                let response = try await engine.exchange(request(server, Self.client)).get()
                #expect(response.status == 200 && response.clientCertificateRequest == Self.names)
            }
            #expect(engine.figures.connectionsOpened == 1)
        }
    }

    @Test("Rule C3: a refused certificate is reported as refused, not as a network error", arguments: versions)
    func aRefusedCertificateIsNotReportedAsALostConnection(version: Int32) async throws {
        let server = server(version)
        defer { server.stop() }
        try await withEngine(trusting: Self.authority) { engine in
            let failure = try #require(await engine.exchange(request(server, Self.stranger)).failure)
            #expect(failure.kind == .tlsFailed && failure.cause == .clientCertificateRefused)
            #expect(failure.clientCertificateRequest == Self.names && failure.serverTrust == nil)
        }
        #expect(server.heard == [""])
    }

    /// The alert may be lost, because the request is still being sent.
    @Test("Rule C3: also where the server closes the connection at once", arguments: versions, ["GET", "POST"])
    func alsoWhereTheServerClosesTheConnectionAtOnce(version: Int32, method: String) async throws {
        let options = TLSServer.Options(clientIssuer: Self.clients, version: version, closesAtOnce: true)
        let server = TLSServer(Self.leaf, options)
        defer { server.stop() }
        try await withEngine(trusting: Self.authority) { engine in
            for count in 0..<20 {
                var one = request(server, count % 2 == 0 ? Self.stranger : nil)
                one.method = method
                if method == "POST" { one.body = .bytes(Array(repeating: 0x78, count: count * 10_000)) }
                let failure = try #require(await engine.exchange(one).failure)
                let cause: TransferFailure.Cause =
                    count % 2 == 0 ? .clientCertificateRefused : .clientCertificateRequired
                #expect(failure.kind == .tlsFailed && failure.cause == cause, "\(failure)")
            }
        }
    }

    @Test(arguments: versions)
    func aRequiredCertificateIsReported(version: Int32) async throws {
        let server = server(version)
        defer { server.stop() }
        try await withEngine(trusting: Self.authority) { engine in
            let failure = try #require(await engine.exchange(request(server, nil)).failure)
            #expect(failure.kind == .tlsFailed && failure.cause == .clientCertificateRequired)
            #expect(failure.clientCertificateRequest == Self.names)
        }
        #expect(server.heard == [""])
    }

    @Test("Rule C2: continuing without a certificate sends none", arguments: versions)
    func continuingWithoutACertificateSendsNone(version: Int32) async throws {
        let server = server(version, isOptional: true)
        defer { server.stop() }
        try await withEngine(trusting: Self.authority) { engine in
            // The second request uses the connection of the first, and still reports the certificate request.
            for _ in 0..<2 {
                let response = try await engine.exchange(request(server, nil)).get()
                #expect(response.status == 200 && response.clientCertificateRequest == Self.names)
            }
            #expect(engine.figures.connectionsOpened == 1)
        }
    }

    @Test("Rule C1: a server that does not request a certificate raises no challenge")
    func aServerThatDoesNotRequestACertificateRaisesNoChallenge() async throws {
        let server = TLSServer(Self.leaf)
        defer { server.stop() }
        try await withEngine(trusting: Self.authority) { engine in
            let response = try await engine.exchange(request(server, Self.client)).get()
            #expect(response.status == 200 && response.clientCertificateRequest == nil)
        }
    }

    @Test("Rules C4 and C5: a certificate is sent in the handshake or never", arguments: versions)
    func aCertificateIsSentInTheHandshakeOrNever(version: Int32) async throws {
        let late = TLSServer(Self.leaf, TLSServer.Options(version: version, asksLate: true))
        defer { late.stop() }
        try await withEngine(trusting: Self.authority) { engine in
            var request = request(late, Self.client)
            request.timeout = .seconds(20)
            _ = await engine.exchange(request)
        }
        #expect(late.heard.count == 1 && late.heard[0].hasPrefix("GET / "))
        #expect(!late.heard[0].contains("late certificate"))
    }

    @Test("Rule L2: a connection with a client certificate serves no other identity and no other certificate")
    func connectionsOfTheCertificateServeNoOtherIdentity() async throws {
        let server = server(TLS1_3_VERSION, isOptional: true)
        defer { server.stop() }
        try await withEngine(trusting: Self.authority) { engine in
            var others = [request(server, Self.client), request(server, nil), request(server, nil)]
            others[1].identity = .none
            others[2].identity = .number(2)
            for other in others { #expect(await engine.exchange(other).text == "ok") }
            #expect(engine.figures.connectionsOpened == 3)
            // The connections are not used with another certificate either, even under the same identity.
            #expect(await engine.exchange(request(server, Self.stranger)).failure?.cause == .clientCertificateRefused)
            #expect(await engine.exchange(request(server, Self.client)).text == "ok")
        }
    }

    @Test func withoutAnIdentityNoCertificateIsSent() async throws {
        let server = server(TLS1_3_VERSION, isOptional: true)
        defer { server.stop() }
        try await withEngine(trusting: Self.authority) { engine in
            var request = request(server, Self.client)
            request.identity = .none
            #expect(await engine.exchange(request).failureKind == .internalError)
        }
        #expect(server.heard.isEmpty)
    }

    /// An untrusted server gets no certificate, because the handshake ends before it is sent.
    @Test func anUntrustedServerGetsNoCertificate() async throws {
        let server = server(TLS1_2_VERSION, isOptional: true)
        defer { server.stop() }
        try await withEngine(trusting: Self.clients) { engine in
            let failure = try #require(await engine.exchange(request(server, Self.client)).failure)
            #expect(failure.kind == .serverNotTrusted && failure.serverTrust?.problems == [.untrustedIssuer])
        }
        #expect(server.heard == [""])
    }
}
