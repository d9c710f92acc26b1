import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Transfers

/// Client certificates whose key never leaves its token.
@Suite(.serialized, .timed, .realServers) struct TokenTests {
    private static let authority = TestCertificate("Test CA", isAuthority: true)
    private static let leaf = TestCertificate("127.0.0.1", names: "IP:127.0.0.1", issuer: authority)
    private static let client = TestCertificate("client", issuer: authority)
    private static let tokens = Result { try SoftToken.make(client) }

    private func uri(_ token: String, _ object: String = "client") -> String {
        "pkcs11:token=\(token);object=\(object)"
    }

    private func token(_ uri: String, _ pin: String?) -> ClientCertificate {
        ClientCertificate(certificate: .token(uri: uri), passphrase: pin.map(secret))
    }

    private func exchange(
        _ certificates: [ClientCertificate], module: String = SoftToken.module
    ) async throws -> [TransferPort.Outcome] {
        try Self.tokens.get()
        let server = TLSServer(Self.leaf, TLSServer.Options(clientIssuer: Self.authority))
        defer { server.stop() }
        return try await withEngine(trusting: Self.authority, tokenModule: module) { engine in
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

    @Test func missingTokensAndInvalidURIsAreUnreadable() async throws {
        let certificates = [
            uri("third"), uri("first", "nobody"), "pkcs11:object=client", "pkcs11:", "file:/tmp/x",
            "\(uri("first"))?pin-value=4711", "pkcs11:pin-value=4711;token=first", "\(uri("first"));token=first",
            "\(uri("first"));x-more=1", "\(uri("%6"))", "\(uri("%+6first"))", "\(uri("first%00"))", "\(uri("%FF"))",
        ].map { token($0, SoftToken.pin) }
        let outcomes = try await exchange(certificates)
        for outcome in outcomes { #expect(outcome.failure?.cause == .clientCertificateUnreadable) }
        let absent = try await exchange([token(uri("first"), SoftToken.pin)], module: "/nonexistent.so")
        #expect(absent[0].failure?.cause == .clientCertificateUnreadable)
    }

    /// The code of such a module would run in the broker.
    @Test(arguments: ["module-path=\(SoftToken.module)", "module-name=softhsm2", "a=b&module-path=x"])
    func noURIChoosesTheModule(query: String) async throws {
        let outcome = try await exchange([token("\(uri("first"))?\(query)", SoftToken.pin)])[0]
        #expect(outcome.failure?.cause == .clientCertificateUnreadable)
        #expect(query.hasPrefix("a=") || outcome.failure?.detail.contains("it contains module-") == true)
    }

    @Test func aWrongPINIsWrongHoweverTheTokenIsCalled() async throws {
        let calls = [
            "pkcs11:token=%66irst;object=client", "pkcs11:object=client;token=%66%69rst", "pkcs11:token=first;id=%a1",
            "pkcs11:token=first;model=SoftHSM%20v2;object=client", "pkcs11:object=client;type=cert;token=first",
        ]
        let right = token(uri("first"), SoftToken.pin)
        let outcomes = try await exchange([right] + calls.flatMap { [token($0, "0000"), token($0, SoftToken.pin)] })
        #expect(outcomes[0].text == "ok")
        for (index, call) in calls.enumerated() {
            #expect(outcomes[2 * index + 1].failure?.kind == .tlsFailed, "\(call)")
            #expect(outcomes[2 * index + 2].text == "ok", "\(call)")
        }
        // Another token has its own PIN.
        #expect(try await exchange([token(uri("second"), "0000")])[0].failure?.cause == .clientKeyPassphraseWrong)
    }
}
