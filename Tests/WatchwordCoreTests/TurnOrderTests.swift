import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Fetches in several queues at once: no two fetches wait for each other.
@Suite struct TurnOrderTests {
    @Test func theLeaseAtTheServerIsHeldWhileWaitingForTheProxy() throws {
        var run = TableRun(proxy: wayOut)
        let (one, other) = (try run.fetch(), try run.fetch(client: 2))
        run.challenge(one)
        run.challengeFromProxy(other)
        run.answer(one, user: "bob", "pw")
        run.challengeFromProxy(one)
        #expect(run.isWaiting(one))
        run.answer(other, user: "out", "pw")
        run.challenge(other)
        #expect(run.isWaiting(other))
        #expect(run.last(one)?.proxyLogin == basic("out", "pw"))
        #expect(run.last(one)?.authorization?.revealed == basic("bob", "pw"))
        run.respond(one, 200)
        run.respond(other, 200)
        #expect(run.results.count == 2)
    }

    /// Once the tunnel exists, the proxy has accepted the password: no fetch needs to wait for the server's certificate.
    @Test func aServerThatIsSeenThroughATunnelSettlesTheLoginAtTheProxy() throws {
        for failure in [TransferFailure.untrusted(1), .certificate(.clientCertificateRequired)] {
            var run = TableRun(proxy: wayOut)
            let (one, other) = (try run.fetch("https://h/", subscription: pinning), try run.fetch("https://i/"))
            run.challengeFromProxy(one)
            run.challengeFromProxy(other)
            #expect(run.isWaiting(other))
            run.answer(one, user: "out", "pw")
            run.report(one, .opensTunnel)
            #expect(run.transferring.contains(other))
            run.fail(one, failure)
            #expect(run.asking == [one])
            #expect(run.last(other)?.proxyLogin == basic("out", "pw"))
            #expect(run.table.sessionCount == 1)
        }
    }

    /// One fetch sends a certificate and is challenged by the proxy; the other has the lease there, and needs the same certificate.
    @Test func noFetchHoldsTheProxyWhileItWaitsForAConnection() throws {
        var run = TableRun(proxy: wayOut)
        let one = try run.fetch("https://h/", program: 1, subscription: pinning)
        let other = try run.fetch("https://h/", client: 2, program: 1, subscription: pinning)
        run.fail(one, .certificate(.clientCertificateRequired))
        run.answer(one, .credential(.certificate(certificate("a"))))
        run.challengeFromProxy(other)
        run.answer(other, user: "out", "pw", .none)
        run.challengeFromProxy(one)
        #expect(run.isWaiting(one))
        run.report(other, .opensTunnel)
        run.fail(other, .certificate(.clientCertificateRequired))
        #expect(run.isWaiting(other))
        #expect(run.last(one)?.proxyLogin == basic("out", "pw"))
        run.respond(one, 200)
        run.respond(other, 200)
        #expect(run.results.count == 2)
        #expect(run.table.waitingCount == 0)
    }

    @Test func aFetchThatCannotContinueAtTheServerReleasesTheProxy() throws {
        var run = TableRun(proxy: wayOut)
        run.schemes.ntlmHosts = [try HostPattern("h")]
        let both = "NTLM, Basic realm=\"r\""
        let one = try run.fetch("https://h/", subscription: pinning)
        run.challenge(one, both)
        #expect(run.asksAbout(one) == .httpBasic)
        run.answer(one, .reject)
        #expect(run.asksAbout(one) == .ntlm)
        run.answer(one, user: "bob", "pässword", .none)
        let other = try run.fetch("https://h/", client: 2)
        run.challenge(other)
        run.challengeFromProxy(one)
        run.answer(one, user: "out", "pw")
        run.answer(other, user: "bob", "pw")
        run.challengeFromProxy(other)
        #expect(run.isWaiting(other))
        run.fail(one, TransferFailure(.internalError, "detail", cause: .charactersUnsupported))
        #expect(run.results[one]?.response.status == 401)
        #expect(run.asking == [other])
    }

    /// A password that waits for the verdict on the same password of another fetch answers the scheme that it was typed for.
    @Test func aCredentialThatWaitsForAVerdictAnswersItsOwnChallenge() throws {
        var run = TableRun()
        let both = "Basic realm=\"r\", Bearer realm=\"r\""
        let one = try run.fetch("https://h/a/") { $0.credential = login("bob", "pw") }
        run.challenge(one, both)
        let other = try run.fetch("https://h/a/", client: 2)
        run.challenge(other, both)
        run.answer(other, user: "bob", "pw")
        #expect(run.isWaiting(other))
        let token = LoginCredential(form: .token, secret: secret("t0ken"), persistence: .forSession)
        _ = run.table.give(
            token, for: SpacePattern(scheme: "https", host: "h", port: 443, realm: "r", authenticationMethod: .bearer),
            of: ClientTag(value: 1), now: .zero)
        run.respond(one, 503)
        #expect(run.last(other)?.authorization?.revealed == basic("bob", "pw"))
    }
}
