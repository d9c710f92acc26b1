import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// Client certificates whose key never leaves its token.
@Suite(.serialized) struct TokenTests {
    private static let authority = TestCertificate("Test CA", isAuthority: true)
    private static let leaf = TestCertificate("127.0.0.1", names: "IP:127.0.0.1", issuer: authority)
    private static let client = TestCertificate("client", issuer: authority)
    private static let tokens = Result { try SoftToken.make(client) }

    private func uri(_ token: String, _ object: String = "client") -> String {
        "pkcs11:token=\(token);object=\(object)?module-path=\(SoftToken.module)"
    }

    private func token(_ uri: String, _ pin: String?) -> ClientCertificate {
        ClientCertificate(certificate: .token(uri: uri), passphrase: pin.map(secret))
    }

    private func exchange(_ certificates: [ClientCertificate]) async throws -> [TransferPort.Outcome] {
        try Self.tokens.get()
        let server = TLSServer(Self.leaf, TLSServer.Options(clientIssuer: Self.authority))
        defer { server.stop() }
        return try await withEngine(trusting: Self.authority) { engine in
            var outcomes: [TransferPort.Outcome] = []
            for certificate in certificates {
                var request = request("https://127.0.0.1:\(server.port)/")
                request.identity = .number(1)
                request.clientCertificate = certificate
                outcomes.append(await engine.exchange(request))
            }
            return outcomes
        }
    }

    @Test func aWrongPINIsWrongBeforeAndAfterTheRightOne() async throws {
        let certificates = ["0000", "0000", SoftToken.pin, "0000", nil, "", SoftToken.pin].map {
            token(uri("first"), $0)
        }
        let outcomes = try await exchange(certificates)
        let wrong = TransferFailure.Cause.clientKeyPassphraseWrong
        #expect(outcomes.map { $0.failure?.cause } == [wrong, wrong, nil, wrong, wrong, wrong, nil])
        #expect(outcomes[2].text == "ok" && outcomes[6].text == "ok")
    }

    @Test func theCertificateMayBeAFile() async throws {
        let certificate = ClientCertificate(
            certificate: .bytes(secret(Self.client.pem)), privateKey: .token(uri: uri("second")),
            passphrase: secret(SoftToken.pin))
        #expect(try await exchange([certificate])[0].text == "ok")
    }

    @Test func whatIsNotThereIsUnreadable() async throws {
        let certificates = [
            uri("third"), uri("first", "nobody"), "pkcs11:object=client?module-path=\(SoftToken.module)", "pkcs11:",
            "\(uri("first"))&pin-value=4711", "pkcs11:pin-value=4711;token=first?module-path=\(SoftToken.module)",
            "pkcs11:token=first;object=client?module-path=/nonexistent.so",
            "pkcs11:token=first;object=client?module-path=libsofthsm2.so", "file:/tmp/x",
        ].map { token($0, SoftToken.pin) }
        let outcomes = try await exchange(certificates)
        for outcome in outcomes { #expect(outcome.failure?.cause == .clientCertificateUnreadable) }
    }
}
