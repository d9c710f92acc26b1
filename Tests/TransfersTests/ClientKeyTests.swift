import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// The sources of a client certificate and its key, and the errors that are found before anything is sent.
@Suite(.timed) struct ClientKeyTests {
    private static let authority = TestCertificate("Test CA", isAuthority: true)
    private static let leaf = TestCertificate("127.0.0.1", names: "IP:127.0.0.1", issuer: authority)
    private static let client = TestCertificate("client", issuer: authority)

    /// Makes one exchange for each certificate, in sequence in one engine, with a server that requires a certificate.
    private func exchange(
        _ certificates: [ClientCertificate]
    ) async throws -> (outcomes: [TransferPort.Outcome], connections: Int) {
        let server = TLSServer(Self.leaf, TLSServer.Options(clientIssuer: Self.authority))
        defer { server.stop() }
        let outcomes = try await withEngine(trusting: Self.authority) { engine in
            var outcomes: [TransferPort.Outcome] = []
            for certificate in certificates {
                var request = request("https://127.0.0.1:\(server.port)/")
                request.identity = .number(1)
                request.clientCertificate = certificate
                outcomes.append(await engine.exchange(request))
            }
            #expect(engine.figures.running == 0)
            return outcomes
        }
        return (outcomes, server.heard.count)
    }

    private func pem(_ passphrase: String?, _ given: String?) -> ClientCertificate {
        let text = Self.client.keyPEM(passphrase: passphrase)
        return ClientCertificate(
            certificate: .bytes(secret(Self.client.pem)), privateKey: .bytes(secret(text)),
            passphrase: given.map(secret))
    }

    private func pkcs12(_ passphrase: String, _ given: String?) -> ClientCertificate {
        ClientCertificate(
            certificate: .bytes(Self.client.pkcs12(passphrase: passphrase)), passphrase: given.map(secret))
    }

    @Test func everyFormIsRead() async throws {
        let file = try TemporaryFile(Self.client.pem + Self.client.keyPEM())
        let key = try TemporaryFile(Self.client.keyPEM(passphrase: "pass phrase"))
        defer {
            file.remove()
            key.remove()
        }
        let certificates = [
            pem(nil, nil), pem(nil, "not needed"), pem("pass phrase", "pass phrase"), pkcs12("pässword", "pässword"),
            pkcs12("", nil), pkcs12("", ""), ClientCertificate(certificate: .file(file.path)),
            ClientCertificate(
                certificate: .file(file.path), privateKey: .file(key.path), passphrase: secret("pass phrase")),
        ]
        #expect(try await exchange(certificates).outcomes.map(\.text) == Array(repeating: "ok", count: 8))
    }

    @Test(arguments: [false, true])
    func aWrongPassphraseIsNeverHiddenByARightOne(isPKCS12: Bool) async throws {
        let (encrypted, store) = (pem("right", nil), pkcs12("right", nil))
        let certificates = ["right", "wrong", nil, "", "right"].map { given in
            var certificate = isPKCS12 ? store : encrypted
            certificate.passphrase = given.map(secret)
            return certificate
        }
        let (outcomes, connections) = try await exchange(certificates)
        let wrong = TransferFailure.Cause.clientKeyPassphraseWrong
        #expect(outcomes.map { $0.failure?.cause } == [nil, wrong, wrong, wrong, nil])
        #expect(outcomes[1].failureKind == TransferFailure.Kind.tlsFailed && outcomes[4].text == "ok")
        #expect(connections == 1)
    }

    @Test func aReplacedFileIsAnotherIdentity() async throws {
        let other = TestCertificate("other", issuer: Self.authority)
        let file = try TemporaryFile(Self.client.pem + Self.client.keyPEM())
        defer { file.remove() }
        let server = TLSServer(Self.leaf, TLSServer.Options(clientIssuer: Self.authority))
        defer { server.stop() }
        try await withEngine(trusting: Self.authority) { engine in
            var request = request("https://127.0.0.1:\(server.port)/")
            request.identity = .number(1)
            request.clientCertificate = ClientCertificate(certificate: .file(file.path))
            let first = try await engine.exchange(request).get().clientCertificate
            #expect(try await engine.exchange(request).get().clientCertificate == first)
            #expect(engine.figures.connectionsOpened == 1)
            file.write(other.pem + other.keyPEM())
            let second = try await engine.exchange(request).get().clientCertificate
            #expect(second != first && second != nil && first != nil)
            #expect(engine.figures.connectionsOpened == 2)
            // The same content is the same identity, whatever the file name.
            request.clientCertificate = ClientCertificate(
                certificate: .bytes(secret(other.pem)), privateKey: .bytes(secret(other.keyPEM(passphrase: "new"))),
                passphrase: secret("new"))
            #expect(try await engine.exchange(request).get().clientCertificate == second)
            #expect(engine.figures.connectionsOpened == 2)
            request.clientCertificate?.expectedContent = first
            #expect(await engine.exchange(request).failure?.cause == .clientCertificateChanged)
        }
    }

    @Test("Rule C6: a key of another certificate is never used")
    func aKeyOfAnotherCertificateIsNeverShown() async throws {
        let other = TestCertificate("client", issuer: Self.authority)
        let wrong = ClientCertificate(
            certificate: .bytes(secret(Self.client.pem)), privateKey: .bytes(secret(other.keyPEM())))
        let (outcomes, connections) = try await exchange([wrong])
        #expect(outcomes[0].failure?.cause == .clientKeyMismatch && connections == 0)
    }

    @Test func unreadableFilesAreReportedWithTheirPath() async throws {
        let empty = try TemporaryFile("")
        defer { empty.remove() }
        let key = ClientCertificate.Material.bytes(secret(Self.client.keyPEM()))
        let certificates = [
            ClientCertificate(certificate: .file("/nonexistent/client.pem"), privateKey: key),
            ClientCertificate(certificate: .file("/tmp"), privateKey: key),
            ClientCertificate(certificate: .file("/dev/zero"), privateKey: key),
            ClientCertificate(certificate: .file(empty.path), privateKey: key),
            ClientCertificate(certificate: .bytes(secret("no certificate")), privateKey: key),
            ClientCertificate(certificate: key),
            ClientCertificate(certificate: .bytes(secret(Self.client.pem))),
            ClientCertificate(certificate: .bytes(secret("0 looks like PKCS#12"))),
        ]
        let (outcomes, connections) = try await exchange(certificates)
        for outcome in outcomes { #expect(outcome.failure?.cause == .clientCertificateUnreadable) }
        #expect(outcomes[0].failure?.detail.contains("/nonexistent/client.pem") == true)
        #expect(connections == 0)
    }
}
