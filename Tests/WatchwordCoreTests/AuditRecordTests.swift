import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The audit log contains each use of a credential once, and each refusal.
@Suite struct AuditRecordTests {
    private func kinds(_ run: TableRun) -> [String] {
        zip(run.notes, run.noted).map { note, fetch in
            "\(note.kind.rawValue) \(fetch?.description ?? "") \(note.user ?? "-") \(note.source.rawValue)"
        }
    }

    @Test func aFetchWithoutALoginIsNotRecorded() throws {
        var run = TableRun()
        let id = try run.fetch()
        run.respond(id, 200)
        #expect(run.notes.isEmpty)
    }

    @Test("Rule G10: each use of a login is recorded")
    func usesAndRefusalsAreRecorded() throws {
        var run = TableRun()
        let id = try run.fetch("http://h/a/page?secret=1")
        run.challenge(id)
        run.answer(id, user: "bob", "wrong")
        run.challenge(id)
        run.answer(id, user: "bob", "right")
        run.respond(id, 200)
        #expect(
            kinds(run) == [
                "credentialUsed f1 bob client", "credentialRefused f1 bob client", "credentialUsed f1 bob client",
            ])
        let note = try #require(run.notes.first)
        #expect(note.origin.text == "http://h" && note.space.realm == "r")
        #expect(note.space.authenticationMethod == .httpBasic)
    }

    @Test func useOfSessionAndKeyringCredentialsIsRecordedWithTheSource() throws {
        var run = TableRun(isKeyringEnabled: true)
        let first = try run.fetch()
        run.challenge(first)
        run.found(first, [item("1", exact("bob"), "pw")])
        run.respond(first, 200)
        let second = try run.fetch()
        run.respond(second, 200)
        #expect(kinds(run) == ["credentialUsed f1 bob keyring", "credentialUsed f2 bob session"])
    }

    /// A retry after `stale` is not another use, and neither are the rounds of one attempt.
    @Test func aStaleNonceIsNotASecondUse() throws {
        var run = TableRun()
        let id = try run.fetch()
        run.challenge(id, #"Digest realm="r", nonce="1", qop="auth""#)
        run.answer(id, user: "bob", "pw")
        run.challenge(id, #"Digest realm="r", nonce="2", qop="auth", stale=true"#)
        run.respond(id, 200)
        #expect(kinds(run) == ["credentialUsed f1 bob client"])
    }

    @Test func aRedirectIsAnotherUse() throws {
        var run = TableRun()
        let id = try run.fetch("http://h/a/page") { $0.maxRedirects = 5 }
        run.challenge(id)
        run.answer(id, user: "bob", "pw")
        run.respond(id, 302, ("Location", "/a/other"))
        run.respond(id, 200)
        #expect(kinds(run) == ["credentialUsed f1 bob client", "credentialUsed f1 bob session"])
    }

    @Test func theProxyIsNamedAsSuch() throws {
        var run = TableRun(proxy: try ProxyEndpoint("http://p:3128"))
        let id = try run.fetch()
        run.challengeFromProxy(id)
        run.answer(id, user: "bob", "pw")
        run.respond(id, 200)
        let note = try #require(run.notes.first)
        #expect(run.notes.count == 1 && note.space.proxyType == .http && note.space.host == "p")
        #expect(note.origin.text == "http://h")
    }

    @Test func aCertificateThatAPersonHasAccepted() throws {
        for persistence in Persistence.allCases {
            var run = TableRun()
            let id = try run.fetch("https://h/a/", subscription: pinning)
            run.fail(id, .untrusted(1))
            #expect(run.notes.isEmpty)
            run.answer(id, .useDefault)
            #expect(run.notes.isEmpty)
            run.answer(id, trust(1, persistence))
            run.respond(id, 200)
            #expect(kinds(run) == ["trustAccepted f1 - agent"])
            #expect(run.notes.first?.persistence == persistence)
            #expect(run.notes.first?.space.authenticationMethod == .serverTrust)
        }
    }

    @Test func clientCertificatesThatAreShownAndRefused() throws {
        var run = TableRun()
        let id = try run.fetch("https://h/a/", subscription: pinning)
        run.fail(id, .certificate(.clientCertificateRequired))
        run.answer(id, .credential(.certificate(certificate("a"))))
        run.fail(id, .certificate(.clientCertificateRefused))
        run.answer(id, .credential(.certificate(certificate("b", .forSession))))
        // More requests on the same connection are the same use.
        run.challenge(id)
        run.answer(id, user: "bob", "pw")
        run.respond(id, 200)
        let later = try run.fetch("https://h/a/", client: 2)
        run.respond(later, 200)
        #expect(
            kinds(run) == [
                "certificateUsed f1 - client", "certificateRefused f1 - client", "certificateUsed f1 - client",
                "credentialUsed f1 bob client", "credentialUsed f2 bob session", "certificateUsed f2 - session",
            ])
    }

    /// A credential that a lock has taken back is not sent, so its use is not recorded.
    @Test func credentialsThatAreNotSentAreNotRecorded() throws {
        var run = TableRun()
        let first = try run.fetch()
        run.challenge(first)
        run.answer(first, user: "bob", "pw")
        run.respond(first, 200)
        run.take(run.table.lock())
        let second = try run.fetch()
        #expect(run.request(second)?.authorization == nil)
        #expect(kinds(run) == ["credentialUsed f1 bob client"])
    }

    /// The record names the fetch, although it has ended.
    @Test func aStoredCredentialIsRecordedWithItsFetch() throws {
        var table = FetchTable(isKeyringEnabled: true)
        let environment = FetchEnvironment(now: .zero, clientNonces: .fixed("n"))
        let request = try FetchRequest(FetchRunParams(url: "http://h/"), subscription: Subscription(delivery: .request))
        let id = table.add(request, of: ClientTag(value: 1)).id
        _ = table.handle(.started, of: id, environment)
        let fields = [HeaderField("WWW-Authenticate", "Basic realm=\"r\"")]
        _ = table.handle(.received(TransferResponse(status: 401, headers: HeaderBlock(fields))), of: id, environment)
        _ = table.handle(.found(.items(.success([]))), of: id, environment)
        let answer = ChallengeAnswer.credential(.login(LoginCredential(user: "bob", password: secret("pw"))))
        let sent = table.handle(.answered(answer), of: id, environment)
        #expect(sent.map(\.name) == ["audit", "transfer"])
        let orders = table.handle(.received(TransferResponse(status: 200, headers: [])), of: id, environment)
        #expect(orders.map(\.name) == ["report", "notify", "finish", "announce"])
        guard case .effect(.announce, of: id) = orders.last else { return #expect(Bool(false)) }
    }
}
