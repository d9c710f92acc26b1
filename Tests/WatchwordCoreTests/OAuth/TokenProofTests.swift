internal import COpenSSL
import JSONText
import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Tokens that are bound to a key: RFC 9449.
@Suite struct TokenProofTests {
    private let key = ProofKey.make()!
    private let bound: JSON = ["access_token": "a1", "token_type": "DPoP", "refresh_token": "r2"]

    private func proof(
        method: String = "GET", _ url: String = "https://api.example/v1/x?secret=1", token: String? = "token",
        nonce: String? = nil
    ) throws -> Proof {
        let text = TokenProof.make(
            by: key, method: method, try FetchURL(url), token: token.map { secret($0) }, nonce: nonce,
            sinceEpoch: .milliseconds(2_000_000_000_900))
        return try #require(text.flatMap(Proof.init))
    }

    /// Verifies a signature of ES256 by the key in the proof's own header, in OpenSSL.
    private func isValid(_ proof: Proof, signed: [UInt8]? = nil) throws -> Bool {
        guard proof.signature.count == 64, proof.point.count == 64 else { return false }
        let signature = try #require(ECDSA_SIG_new())
        defer { ECDSA_SIG_free(signature) }
        let (r, s) = (Array(proof.signature.prefix(32)), Array(proof.signature.dropFirst(32)))
        guard ECDSA_SIG_set0(signature, BN_bin2bn(r, 32, nil), BN_bin2bn(s, 32, nil)) == 1 else { return false }
        var der = [UInt8](repeating: 0, count: 128)
        let count = der.withUnsafeMutableBufferPointer { buffer in
            var start = buffer.baseAddress
            return Int(i2d_ECDSA_SIG(signature, &start))
        }
        // The fixed start of a public key on P-256 (RFC 5480), up to the uncompressed point.
        let algorithm: [UInt8] = [
            0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48,
            0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
        ]
        let encoded = algorithm + proof.point
        let parsed = encoded.withUnsafeBufferPointer { buffer in
            var start = buffer.baseAddress
            return d2i_PUBKEY(nil, &start, encoded.count)
        }
        let key = try #require(parsed)
        defer { EVP_PKEY_free(key) }
        let context = try #require(EVP_MD_CTX_new())
        defer { EVP_MD_CTX_free(context) }
        let text = signed ?? proof.signed
        return EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1
            && EVP_DigestVerify(context, der, count, text, text.count) == 1
    }

    // MARK: Proofs

    @Test("RFC 7518 section 3.4: the signature is right, again and again")
    func theSignatureIsRight() throws {
        // Each number has 32 bytes, also when its first bytes are zero, as about one in a hundred has.
        for _ in 0..<50 {
            let proof = try proof()
            #expect(try isValid(proof))
            #expect(try !isValid(proof, signed: proof.signed + [0x20]))
        }
    }

    @Test("Rule K11: the claims of a proof")
    func theClaims() throws {
        let found = try proof(nonce: "n")
        #expect(found.header["typ"]?.string == "dpop+jwt" && found.header["alg"]?.string == "ES256")
        #expect(found.header["jwk"]?["kty"]?.string == "EC" && found.header["jwk"]?["crv"]?.string == "P-256")
        #expect(found.header["jwk"]?.members?.count == 4, "nothing of the private key")
        #expect(found.claims["htm"]?.string == "GET")
        #expect(found.claims["htu"]?.string == "https://api.example/v1/x", "without the query")
        #expect(found.claims["iat"]?.integer == 2_000_000_000 && found.claims["nonce"]?.string == "n")
    }

    @Test("RFC 9449 section 4.2: `ath` is the hash of the token")
    func theHashOfTheToken() throws {
        // SHA-256 of "abc", from FIPS 180-2.
        #expect(try proof(token: "abc").claims["ath"]?.string == "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0")
        #expect(try proof(token: nil).claims["ath"] == nil && proof(token: nil).claims["nonce"] == nil)
    }

    @Test func eachProofHasAnIdentifierOfItsOwn() throws {
        #expect(Set(try (0..<20).map { _ in try proof().claims["jti"]?.string }).count == 20)
    }

    @Test func aKeyIsReadAsItWasWritten() throws {
        #expect(ProofKey(key.privateKey) == key && key.publicKey.count == 64)
        #expect(ProofKey.make() != key)
        #expect(ProofKey(secret("no key")) == nil && ProofKey(secret("")) == nil)
        #expect(try proof().point == key.publicKey)
    }

    // MARK: Nonces of resources

    @Test("RFC 9449 section 9: each server has its nonce, and their number is limited")
    func noncesAreKeptForEachServer() throws {
        func origin(_ number: Int) throws -> Origin { try FetchURL("https://h\(number)").origin }
        var nonces = ProofNonces()
        try nonces.record("a", of: origin(0))
        try nonces.record(nil, of: origin(0))
        #expect(try nonces[origin(0)] == "a" && nonces[origin(1)] == nil)
        try nonces.record(String(repeating: "n", count: 1025), of: origin(0))
        #expect(try nonces[origin(0)] == "a")
        try nonces.record("b", of: origin(0))
        for number in 1...255 { try nonces.record("c", of: origin(number)) }
        #expect(try nonces[origin(0)] == "b", "256 servers")
        try nonces.record("d", of: origin(0))
        #expect(try nonces[origin(1)] == "c", "a new nonce of a known server removes none")
        try nonces.record("e", of: origin(256))
        #expect(try nonces[origin(0)] == nil && nonces[origin(256)] == "e")
    }

    // MARK: Token requests

    private static let offers: JSON = ["dpop_signing_alg_values_supported": ["ES256"]]

    private func redeeming(_ change: JSON = offers, _ rule: (inout OAuthRule) -> Void = { _ in }) throws -> TokenRun {
        var run = try TokenRun(change: rule)
        run.beginLogin(server: change)
        run.redirect()
        return run
    }

    @Test("Rule K11: a token is bound where the server offers it")
    func aTokenIsBoundWhereTheServerOffersIt() throws {
        var run = try redeeming()
        let proof = try #require(run.request?.proof)
        #expect(try isValid(proof))
        #expect(proof.claims["htm"]?.string == "POST" && proof.claims["htu"]?.string == "https://as.example/token")
        #expect(proof.claims["ath"] == nil && proof.claims["nonce"] == nil)
        run.reply(bound)
        #expect(run.stored?.proofKey?.publicKey == proof.point)
        run.handle(.stored)
        #expect(run.token?.binding?.publicKey == proof.point)
    }

    @Test func withoutOfferOrPermissionThereIsNoProof() throws {
        #expect(try redeeming([:]).request?.proof == nil)
        #expect(try redeeming { $0.usesDPoP = false }.request?.proof == nil)
    }

    @Test("Rule K11: a token of type Bearer is not bound, although a proof was sent")
    func aTokenOfTypeBearerIsNotBound() throws {
        var run = try redeeming()
        run.reply(["access_token": "a1", "token_type": "Bearer"])
        #expect(run.token != nil && run.token?.binding == nil)
    }

    @Test func aTokenThatIsBoundToNoKeyOfTheBrokerIsRefused() throws {
        var run = try redeeming([:])
        run.reply(bound)
        #expect(run.token == nil && run.failure?.kind == .loginFailed)
    }

    @Test func aRenewalUsesTheKeyOfTheGrant() throws {
        var run = try TokenRun { $0.usesDPoP = false }
        run.find(grant { $0.proofKey = key })
        #expect(run.request?.proof?.point == key.publicKey)
        run.reply(bound)
        #expect(run.stored?.proofKey == key)
    }

    @Test("RFC 9449 section 8: a nonce is used at once, and for later requests")
    func aNonceIsUsedOnce() throws {
        var run = try redeeming()
        let first = try #require(run.request)
        run.reply(["error": "use_dpop_nonce"], status: 400, ("DPoP-Nonce", "n1"))
        let second = try #require(run.request)
        #expect(second.body == first.body && second.proof?.claims["nonce"]?.string == "n1")
        #expect(second.headers.values(of: "DPoP").count == 1)
        #expect(second.proof?.claims["jti"]?.string != first.proof?.claims["jti"]?.string)
        // A server that is never content does not get a third request.
        run.reply(["error": "use_dpop_nonce"], status: 400, ("DPoP-Nonce", "n2"))
        #expect(run.request == nil && run.failure?.text.contains("use_dpop_nonce") == true)
    }

    @Test func withoutANonceThereIsNoSecondRequest() throws {
        var run = try redeeming()
        run.reply(["error": "use_dpop_nonce"], status: 400)
        #expect(run.request == nil && run.failure != nil)
    }

    @Test func aNonceOfASuccessfulReplyIsForTheNextRequest() throws {
        var run = try TokenRun { $0.flow = .device }
        run.find(nil, server: Self.offers)
        run.reply(["device_code": "d", "user_code": "u", "verification_uri": "https://as.example/device"])
        run.handle(.timePassed)
        #expect(run.request?.proof != nil)
        run.reply(["error": "authorization_pending"], status: 400, ("DPoP-Nonce", "n1"))
        #expect(run.request == nil && run.wake != nil)
        run.handle(.timePassed)
        #expect(run.request?.proof?.claims["nonce"]?.string == "n1")
        // Each request may be repeated once.
        run.reply(["error": "use_dpop_nonce"], status: 400, ("DPoP-Nonce", "n2"))
        #expect(run.request?.proof?.claims["nonce"]?.string == "n2")
    }

    @Test("The time of the server is used after one refusal, and only then")
    func theTimeOfTheServerIsUsedOnce() throws {
        var run = try redeeming()
        run.sinceEpoch = .seconds(784_111_777 + 7200)
        run.reply(["error": "invalid_dpop_proof"], status: 400, ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"))
        #expect(run.request?.proof?.claims["iat"]?.integer == 784_111_777)
        run.reply(["error": "invalid_dpop_proof"], status: 400, ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"))
        #expect(run.request == nil && run.failure?.text.contains("invalid_dpop_proof") == true)
    }

    @Test(arguments: [nil, "yesterday"])
    func withoutATimeThereIsNoSecondRequest(date: String?) throws {
        var run = try redeeming()
        run.handle(
            .replied(
                .success(
                    reply(
                        ["error": "invalid_dpop_proof"], status: 400, date.map { [HeaderField("Date", $0)] } ?? []))))
        #expect(run.request == nil && run.failure != nil)
    }

    @Test func clientCredentialsAreBoundAsWell() throws {
        var run = try TokenRun { ($0.flow, $0.clientSecret) = (.clientCredentials, secret("s")) }
        run.findServer(Self.offers)
        #expect(run.request?.proof != nil)
        run.reply(["access_token": "a1", "token_type": "DPoP"])
        #expect(run.token?.binding != nil)
    }
}
