import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Accepted certificates of servers, and client certificates, in the list of stored credentials.
@Suite struct InventoryTests {
    private let client = ClientTag(value: 1)

    private func accepting(_ run: inout TableRun, _ persistence: Persistence, client: Int = 1) throws -> FetchID {
        let fetch = try run.fetch("https://h/a/", client: client, subscription: pinning)
        run.fail(fetch, .untrusted(1))
        run.answer(fetch, trust(1, persistence))
        return fetch
    }

    private func showing(_ run: inout TableRun, _ credential: CertificateCredential, client: Int = 1) throws -> FetchID
    {
        let fetch = try run.fetch("https://c/a/", client: client, subscription: pinning)
        run.fail(fetch, .certificate(.clientCertificateRequired))
        run.answer(fetch, .credential(.certificate(credential)))
        return fetch
    }

    private func changes(_ run: TableRun) -> [CredentialChange] {
        run.effects.compactMap { if case .announce(let change) = $0 { change } else { nil } }
    }

    @Test func entriesAreListedWithTheirDetails() throws {
        var run = TableRun()
        run.respond(try accepting(&run, .forSession), 200)
        run.respond(try showing(&run, certificate("a", .forSession)), 200)
        run.now = .seconds(5)
        let listed = run.table.connectionDecisions(of: client, now: run.now)
        #expect(listed.map(\.id) == [.trust(1), .certificate(2)])
        #expect(listed.map(\.kind) == [.trust(spkiSha256: hash(1)), .certificate(source: "/a.pem")])
        #expect(listed.map(\.pattern.authenticationMethod) == [.serverTrust, .clientCertificate])
        #expect(listed.map(\.lastUsed) == [nil, .seconds(5)])
        #expect(listed.allSatisfy { $0.persistence == .forSession && $0.user == nil && !$0.isDefault })
        #expect(changes(run).map(\.kind) == [.stored, .stored])
    }

    @Test func decisionsForOneFetchAreNotListed() throws {
        var run = TableRun()
        run.respond(try accepting(&run, .none), 200)
        run.respond(try showing(&run, certificate("a")), 200)
        #expect(run.table.connectionDecisions(of: client, now: run.now).isEmpty)
        #expect(changes(run).isEmpty)
    }

    @Test func rememberingTheSameAgainReportsNoChange() throws {
        var run = TableRun()
        run.respond(try showing(&run, certificate("a", .forSession)), 200)
        run.respond(try run.fetch("https://c/b/"), 200)
        #expect(changes(run).count == 1)
    }

    @Test(arguments: [Persistence.forSession, .permanent])
    func aForgottenExceptionIsAskedAboutAgain(persistence: Persistence) throws {
        var run = TableRun()
        run.respond(try accepting(&run, persistence), 200)
        let later = try run.fetch("https://h/b/")
        let identity = try #require(run.identity(later))
        run.respond(later, 200)
        let (count, orders) = run.table.forget(decision: .trust(1), of: client)
        run.take(orders)
        #expect(count == 1 && run.closed.contains(identity))
        #expect(changes(run).map(\.kind) == [.stored, .forgotten])
        #expect(run.kept.last == (persistence == .permanent ? [] : nil))
        #expect(try run.first("https://h/")?.trust == .verify)
        #expect(run.table.forget(decision: .trust(1), of: client).count == 0)
    }

    @Test func aForgottenExceptionServesNoFetchThatIsUnderWay() throws {
        var run = TableRun()
        run.respond(try accepting(&run, .forSession), 200)
        let fetch = try run.fetch("https://h/b/", subscription: pinning)
        #expect(run.last(fetch)?.trustedKey == 1)
        run.challenge(fetch)
        run.take(run.table.forget(decision: .trust(1), of: client).orders)
        run.answer(fetch, user: "bob", "pw", .none)
        #expect(run.last(fetch)?.trust == .verify)
        run.fail(fetch, .untrusted(1))
        #expect(run.asksAbout(fetch) == .serverTrust)
    }

    @Test func anAnswerToAnEarlierQuestionRestoresNothing() throws {
        var run = TableRun()
        run.respond(try accepting(&run, .forSession), 200)
        let fetch = try run.fetch("https://h/b/", subscription: pinning)
        run.fail(fetch, .untrusted(2))
        run.take(run.table.forget(decision: .trust(1), of: client).orders)
        run.answer(fetch, trust(2, .forSession))
        run.respond(fetch, 200)
        #expect(run.table.connectionDecisions(of: client, now: run.now).isEmpty)
    }

    /// While a fetch that has sent the certificate waits for a password, another fetch provides another certificate.
    @Test func aForgottenCertificateThatWasReplacedIsNotSent() throws {
        var run = TableRun()
        run.respond(try showing(&run, certificate("a", .forSession)), 200)
        let later = try run.fetch("https://c/b/")
        #expect(run.last(later)?.shownCertificate == "/a.pem")
        run.challenge(later)
        let (count, orders) = run.table.forget(decision: .certificate(1), of: client)
        #expect(count == 1)
        run.take(orders)
        let other = try run.fetch("https://c/c/", client: 1, subscription: pinning)
        run.fail(other, .certificate(.clientCertificateRequired))
        run.answer(other, .credential(.certificate(certificate("b", .forSession))))
        run.respond(other, 200)
        run.answer(later, user: "bob", "pw")
        #expect(run.last(later)?.shownCertificate != "/a.pem")
    }

    @Test func aForgottenCertificateIsNotSent() throws {
        var run = TableRun()
        run.respond(try showing(&run, certificate("a", .forSession)), 200)
        let (later, underWay) = (try run.fetch("https://c/b/"), try run.fetch("https://c/c/"))
        #expect(run.last(later)?.shownCertificate == "/a.pem")
        let identity = try #require(run.identity(later))
        run.respond(later, 200)
        run.challenge(underWay)
        let (count, orders) = run.table.forget(decision: .certificate(1), of: client)
        run.take(orders)
        #expect(count == 1 && run.closed.contains(identity))
        run.answer(underWay, user: "bob", "pw")
        #expect(run.last(underWay)?.clientCertificate == nil)
        #expect(try run.first("https://c/")?.clientCertificate == nil)
    }

    @Test func aPatternForgetsThemToo() throws {
        for (host, method, count) in [
            ("h", AuthenticationMethod?.none, 1), ("c", nil, 1), ("h", .serverTrust, 1), ("c", .clientCertificate, 1),
            ("h", .httpBasic, 0), ("c", .serverTrust, 0), ("other", nil, 0),
        ] {
            var run = TableRun()
            run.respond(try accepting(&run, .forSession), 200)
            run.respond(try showing(&run, certificate("a", .forSession)), 200)
            let pattern = SpacePattern(
                scheme: "https", host: ExactText(host), port: 443, authenticationMethod: method)
            let (forgotten, orders) = run.table.forget(number: nil, pattern: pattern, of: client)
            run.take(orders)
            #expect(forgotten == count)
            #expect(run.table.connectionDecisions(of: client, now: run.now).count == 2 - count)
        }
    }

    @Test func noClientManagesThePrivateDecisionsOfAnother() throws {
        let other = ClientTag(value: 2)
        var run = TableRun(sharing: .client)
        run.respond(try accepting(&run, .forSession), 200)
        run.respond(try showing(&run, certificate("a", .forSession)), 200)
        #expect(run.table.connectionDecisions(of: client, now: run.now).count == 2)
        #expect(run.table.connectionDecisions(of: other, now: run.now).isEmpty)
        for id in [CredentialID.trust(1), .certificate(2)] {
            #expect(run.table.forget(decision: id, of: other).count == 0)
            #expect(run.table.forget(decision: id, of: client).count == 1)
        }
        // A permanent exception is used for all clients.
        run.respond(try accepting(&run, .permanent), 200)
        #expect(run.table.connectionDecisions(of: other, now: run.now).map(\.persistence) == [.permanent])
    }

    @Test(arguments: [
        ("/home/bob/bob.pem", "/home/bob/bob.pem"),
        ("pkcs11:token=t;object=o?module-name=m&pin-value=1234", "pkcs11:token=t;object=o?module-name=m"),
        ("pkcs11:token=t?pin-source=file:/pin", "pkcs11:token=t"), ("pkcs11:token=t", "pkcs11:token=t"),
        ("-----BEGIN CERTIFICATE-----", nil), ("/" + String(repeating: "a", count: 4096), nil),
    ])
    func neitherAPINNorAKeyIsListed(text: String, shown: String?) {
        #expect(CertificateCredential(certificate: secret(text), privateKey: nil).shownSource == shown)
    }
}
