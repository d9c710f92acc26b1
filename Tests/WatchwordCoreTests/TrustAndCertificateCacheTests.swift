import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The cache of decisions about connections: their owners, lifetime and number.
@Suite struct TrustAndCertificateCacheTests {
    private let place = Origin(scheme: .https, host: "h", port: 443)
    private let one = Partition.client(ClientTag(value: 1))
    private let other = Partition.client(ClientTag(value: 2))

    private func key(_ key: UInt8, _ port: Int = 443) -> TrustedKey {
        TrustedKey(origin: Origin(scheme: .https, host: "h", port: port), spkiSha256: hash(key))
    }

    @Test("Rule C8: an exception is for its origin and its owner")
    func anExceptionIsForItsOriginAndItsOwner() {
        var decisions = TrustAndCertificateCache()
        decisions.trust(key(1), isPermanent: false, owner: one, now: .zero)
        #expect(decisions.trustedKey(at: place, owner: one)?.spkiSha256 == hash(1))
        #expect(decisions.trustedKey(at: place, owner: other) == nil)
        #expect(decisions.trustedKey(at: Origin(scheme: .https, host: "h", port: 444), owner: one) == nil)
        decisions.trust(key(2), isPermanent: true, owner: other, now: .zero)
        #expect(decisions.trustedKey(at: place, owner: nil)?.isPermanent == true)
        #expect(decisions.permanentKeys == [key(2)])
    }

    @Test func aSessionKeyPrecedesAPermanentKeyWithoutReplacingIt() {
        var decisions = TrustAndCertificateCache()
        decisions.trust(key(1), isPermanent: true, owner: nil, now: .zero)
        decisions.trust(key(2), isPermanent: false, owner: nil, now: .zero)
        #expect(decisions.trustedKey(at: place, owner: nil)?.spkiSha256 == hash(2))
        #expect(decisions.permanentKeys == [key(1)])
        decisions.trust(key(3), isPermanent: true, owner: nil, now: .zero)
        #expect(decisions.permanentKeys == [key(3)])
        #expect(decisions.trustedKey(at: place, owner: nil)?.spkiSha256 == hash(3))
        let first = decisions.forgetTrust(at: place)
        let second = decisions.forgetTrust(at: place)
        #expect(first && !second && decisions.isEmpty)
    }

    @Test func allButPermanentDecisionsEndWithTheSession() {
        for isExpired in [true, false] {
            var decisions = TrustAndCertificateCache()
            decisions.trust(key(1), isPermanent: true, owner: nil, now: .zero)
            decisions.trust(key(2, 444), isPermanent: false, owner: nil, now: .zero)
            decisions.remember(certificate("a"), at: place, owner: nil, now: .zero)
            #expect(!decisions.isEmpty)
            if isExpired {
                decisions.expire(SessionLimits(), now: Limits.sessionLifetime)
            } else {
                let count = decisions.clear()
                #expect(count == 2)
            }
            #expect(decisions.isEmpty)
            #expect(decisions.permanentKeys == [key(1)])
        }
    }

    @Test func anUnusedCertificateExpires() {
        var decisions = TrustAndCertificateCache()
        decisions.remember(certificate("a"), at: place, owner: nil, now: .zero)
        decisions.remember(certificate("a"), at: place, owner: nil, now: Limits.sessionIdle - .seconds(1))
        decisions.expire(SessionLimits(), now: Limits.sessionIdle + .seconds(1))
        #expect(decisions.certificate(at: place, owner: nil) != nil)
        decisions.expire(SessionLimits(), now: Limits.sessionIdle * 2)
        #expect(decisions.certificate(at: place, owner: nil) == nil)
    }

    @Test func onlyTheCertificateThatWasRefusedIsForgotten() {
        var decisions = TrustAndCertificateCache()
        decisions.remember(certificate("old"), at: place, owner: nil, now: .zero)
        decisions.remember(certificate("new"), at: place, owner: nil, now: .zero)
        decisions.forget(certificate("old"), at: place)
        #expect(decisions.certificate(at: place, owner: nil)?.isSame(as: certificate("new")) == true)
        #expect(decisions.certificate(at: place, owner: one) == nil)
        decisions.forget(certificate("new"), at: place)
        #expect(decisions.isEmpty)
    }

    @Test func clearingIsForOneOriginOrOneClient() {
        var decisions = TrustAndCertificateCache()
        for client in [one, other] {
            decisions.trust(key(1), isPermanent: false, owner: client, now: .zero)
            decisions.remember(certificate("a"), at: place, owner: client, now: .zero)
        }
        let elsewhere = decisions.clear(origin: Origin(scheme: .https, host: "i", port: 443))
        let first = decisions.clear(owner: one)
        #expect(elsewhere == 0 && first == 2)
        #expect(decisions.certificate(at: place, owner: other) != nil)
        let rest = decisions.clear(origin: place)
        #expect(rest == 2)
    }

    @Test func decisionsAreBounded() {
        var decisions = TrustAndCertificateCache()
        for port in 1...Limits.rememberedDecisions + 1 {
            decisions.trust(key(1, port), isPermanent: false, owner: nil, now: .zero)
            decisions.remember(certificate("a"), at: key(1, port).origin, owner: nil, now: .zero)
        }
        #expect(decisions.trustedKey(at: key(1, 1).origin, owner: nil) == nil)
        #expect(decisions.certificate(at: key(1, 1).origin, owner: nil) == nil)
        let count = decisions.clear()
        #expect(count == 2 * Limits.rememberedDecisions)
    }

    @Test func aWrittenKeyIsReadBack() {
        let key = key(10, 8443)
        #expect(TrustedKey(line: key.line) == key)
        let hash = String(repeating: "0a", count: 32)
        for line in [
            "", "https://h:443/", "http://h:80/ \(hash)", "https://h/x \(hash)", "https://h 0a", "https://h \(hash) x",
        ] {
            #expect(TrustedKey(line: line) == nil)
        }
    }
}
