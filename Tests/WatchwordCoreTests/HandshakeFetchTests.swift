import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Logins of connections, and the separation of connections: SECURITY-RULES N1 to N6 and O2.
@Suite struct HandshakeFetchTests {
    private func run(proxy: ProxyEndpoint? = nil) throws -> TableRun {
        var run = TableRun(proxy: proxy)
        run.schemes.ntlmHosts = [try HostPattern("h"), try HostPattern("p")]
        run.schemes.negotiateHosts = run.schemes.ntlmHosts
        return run
    }

    private func logIn(
        _ run: inout TableRun, _ user: ExactText = "bob", client: Int = 1, persistence: Persistence = .none
    ) throws -> FetchID {
        let fetch = try run.fetch("https://h/", client: client)
        run.challenge(fetch, "NTLM")
        run.answer(fetch, user: user, "pw", persistence)
        return fetch
    }

    /// Returns a fetch with its own credential, challenged for NTLM. The session remembers the credential once it is accepted.
    private func logInWithItsOwn(_ run: inout TableRun, _ user: ExactText, client: Int = 1) throws -> FetchID {
        let fetch = try run.fetch("https://h/", client: client) { $0.credential = login(user, "pw") }
        run.challenge(fetch, "NTLM")
        return fetch
    }

    @Test("Rules L2 and N1: each login has its own connections")
    func aConnectionBelongsToItsLogin() throws {
        var run = try run()
        let bob = try logInWithItsOwn(&run, "bob")
        #expect(run.last(bob)?.handshake?.scheme == .ntlm)
        #expect(run.last(bob)?.handshake?.user == "bob")
        #expect(run.last(bob)?.authorization == nil)
        let identity = try #require(run.identity(bob))
        #expect(identity != .none)
        run.respond(bob, 200)
        #expect(run.closed.isEmpty)
        let same = try logInWithItsOwn(&run, "bob", client: 2)
        #expect(run.identity(same) == identity)
        run.respond(same, 200)
        let carol = try logInWithItsOwn(&run, "carol")
        #expect(run.identity(carol) != identity)
        let anonymous = try run.fetch("https://h/")
        #expect(run.identity(anonymous) == ConnectionIdentity.none)
    }

    @Test func aRefusedLoginLeavesNoConnection() throws {
        var run = try run()
        let fetch = try logIn(&run)
        let identity = try #require(run.identity(fetch))
        run.challenge(fetch, "NTLM")
        #expect(run.closed == [identity])
        #expect(run.question(fetch)?.previousFailureCount == 1)
        run.answer(fetch, user: "bob", "pw")
        #expect(run.question(fetch)?.error == .credentialAlreadyRefused)
    }

    @Test func aRefusedLoginLeavesNoTunnel() throws {
        var run = try run(proxy: wayOut)
        let fetch = try run.fetch("https://h/")
        run.challengeFromProxy(fetch)
        run.answer(fetch, user: "out", "pw")
        let identity = try #require(run.identity(fetch))
        #expect(identity != .none)
        run.challengeFromProxy(fetch)
        #expect(run.closed == [identity])
    }

    @Test func aTunnelOfOneLoginServesNoOtherLogin() throws {
        var run = try run(proxy: wayOut)
        let users: [ExactText] = ["out", "other"]
        let ids = try users.indices.map { index in
            try run.fetch("https://h/", client: index) { $0.useStorage = false }
        }
        for (id, user) in zip(ids, users) {
            run.challengeFromProxy(id)
            run.answer(id, user: user, "pw")
        }
        #expect(Set(ids.map { run.identity($0) }).count == 2)
        let plain = try run.fetch("http://h/") { $0.useStorage = false }
        run.challengeFromProxy(plain)
        run.answer(plain, user: "out", "pw")
        #expect(run.identity(plain) == ConnectionIdentity.none)
    }

    @Test func connectionsOfClearedSessionsAreClosed() throws {
        for isLock in [true, false] {
            var run = try run()
            let fetch = try logIn(&run, persistence: .forSession)
            let identity = try #require(run.identity(fetch))
            run.respond(fetch, 200)
            run.take(isLock ? run.table.lock() : run.table.clearSession().orders)
            #expect(run.closed == [identity])
            run.table.unlock()
            let later = try logIn(&run)
            #expect(run.identity(later) != identity)
        }
    }

    @Test func theIdentityUnusedForLongestMakesRoom() throws {
        var run = try run()
        var ids: [ConnectionIdentity] = []
        for number in 0...Limits.connectionIdentities {
            let fetch = try logInWithItsOwn(&run, "user\(number)")
            ids.append(try #require(run.identity(fetch)))
            run.respond(fetch, 200)
            if number > 0 { run.respond(try logInWithItsOwn(&run, "user0"), 200) }
        }
        #expect(Set(ids).count == Limits.connectionIdentities + 1)
        #expect(run.closed == [ids[1]])
    }

    @Test("Rule N2: NTLM is used through a forwarding proxy only with Proxy-Support")
    func connectionLoginsThroughAForwardingProxyNeedProxySupport() throws {
        for says in [true, false] {
            var run = try run(proxy: wayOut)
            let fetch = try run.fetch("http://h/")
            let support = says ? [HeaderField("Proxy-Support", "Session-Based-Authentication")] : []
            run.receive(fetch, 401, [HeaderField("WWW-Authenticate", "NTLM, Basic realm=\"r\"")] + support) { _ in }
            run.answer(fetch, .reject)
            #expect(run.asksAbout(fetch) == (says ? .ntlm : nil))
            let tunnel = try run.fetch("https://h/")
            run.challenge(tunnel, "NTLM")
            #expect(run.asksAbout(tunnel) == .ntlm)
        }
    }

    @Test func aConnectionHasOneLoginOnly() throws {
        var run = try run(proxy: wayOut)
        let fetch = try run.fetch("https://h/")
        run.challengeFromProxy(fetch, "NTLM")
        run.answer(fetch, user: "out", "pw", .forSession)
        #expect(run.last(fetch)?.handshake?.target == .proxy)
        run.challenge(fetch, "NTLM, Basic realm=\"r\"")
        #expect(run.asksAbout(fetch) == .httpBasic)
        #expect(run.question(fetch)?.offers.map(\.supported) == [false, true])
        run.answer(fetch, user: "bob", "pw")
        #expect(run.last(fetch)?.handshake?.target == .proxy)
        #expect(run.last(fetch)?.authorization?.revealed == basic("bob", "pw"))
    }

    @Test("Rules 15, N3, N4 and N6: tickets and delegation are for listed hosts, after a challenge")
    func ticketsAndDelegationAreForListedHostsAfterAChallenge() throws {
        var run = try run()
        run.schemes.delegationHosts = [try HostPattern("p")]
        let fetch = try run.fetch("https://h/")
        run.challenge(fetch, "Negotiate")
        #expect(run.last(fetch)?.handshake?.scheme == .negotiate)
        #expect(run.last(fetch)?.handshake?.delegates == false)
        run.respond(fetch, 200)
        #expect(run.results[fetch]?.authentication?.source == .ambient)
        let elsewhere = try run.fetch("https://i/")
        run.challenge(elsewhere, "Negotiate")
        #expect(run.results[elsewhere]?.response.status == 401)
        let closed = try run.fetch("https://h/") { $0.useStorage = false }
        run.challenge(closed, "Negotiate")
        #expect(run.results[closed]?.response.status == 401)
        let later = try run.fetch("https://h/")
        #expect(run.last(later)?.handshake == nil)
    }

    @Test("Rule 15: the fetch's own credential comes before Kerberos tickets")
    func theFetchsOwnCredentialComesBeforeKerberosTickets() throws {
        var run = try run()
        let token = LoginCredential(form: .token, secret: secret("t0ken"))
        let fetch = try run.fetch("https://h/") { $0.credential = token }
        run.challenge(fetch, "Negotiate, Bearer realm=\"r\"")
        #expect(run.sent == ["Bearer t0ken"])
        #expect(run.last(fetch)?.handshake == nil)
    }

    @Test(
        "Rule O2: when a login fails technically, the weaker scheme raises a challenge",
        arguments: [TransferFailure.Cause.noTicket, .charactersUnsupported])
    func aLoginThatCannotBeMadeIsAskedAboutAndNeverReplacedSilently(cause: TransferFailure.Cause) throws {
        var run = try run()
        let stored = try run.fetch("https://h/a/")
        run.challenge(stored)
        run.answer(stored, user: "bob", "pw")
        run.respond(stored, 200)
        let fetch = try run.fetch("https://h/") { $0.preemption = .never }
        run.challenge(fetch, "Negotiate, Basic realm=\"r\"")
        run.fail(fetch, TransferFailure(.internalError, "detail", cause: cause))
        #expect(run.asksAbout(fetch) == .httpBasic)
        #expect(run.question(fetch)?.previousFailureCount == 0)
        #expect(run.requests[fetch]?.count == 2)
        run.answer(fetch, .credential(.proposed))
        #expect(run.last(fetch)?.authorization?.revealed == basic("bob", "pw"))
    }

    /// SECURITY-RULES N8: the error gives the reason, unless a respondent is asked about another scheme and accepts the response.
    @Test(
        "Rule N8: an NTLM attempt that cannot be made fails with its reason",
        arguments: [TransferFailure.Cause.ntlmChallengeUnusable, .ntlmNotContinued])
    func anAttemptByNTLMThatCannotBeMadeFailsWithItsReason(cause: TransferFailure.Cause) throws {
        var run = try run()
        run.schemes.ntlmHosts = [try HostPattern("h")]
        let failure = TransferFailure(.malformedResponse, "why", cause: cause)
        let fetch = try run.fetch("https://h/")
        run.challenge(fetch, "NTLM")
        run.answer(fetch, user: "bob", "pw")
        run.fail(fetch, failure)
        #expect(run.failures[fetch] == FetchFailure(.notSupported, "why"))
        let other = try run.fetch("https://h/") { $0.preemption = .never }
        run.challenge(other, "NTLM, Basic realm=\"r\"")
        run.answer(other, .reject)
        run.answer(other, user: "bob", "pw")
        run.fail(other, failure)
        #expect(run.results[other] == nil && run.failures[other]?.kind == .notSupported)
    }

    @Test(arguments: [Persistence.none, .forSession])
    func aConnectionDoesNotOutliveACredentialThatIsNotStored(persistence: Persistence) throws {
        var run = try run()
        run.schemes.ntlmHosts = [try HostPattern("h")]
        let fetch = try run.fetch("https://h/")
        run.challenge(fetch, "NTLM")
        run.answer(fetch, user: "bob", "pw", persistence)
        let identity = try #require(run.last(fetch)?.identity)
        #expect(identity != .none && run.closed.isEmpty)
        run.respond(fetch, 200)
        #expect(run.results[fetch]?.response.status == 200)
        #expect(run.closed == (persistence == .none ? [identity] : []))
    }

    @Test func anUnusedConnectionHoldsNoPassword() throws {
        var run = try run()
        let fetch = try logInWithItsOwn(&run, "bob")
        let identity = try #require(run.identity(fetch))
        run.respond(fetch, 200)
        run.now += Limits.secretIdentityIdle - .seconds(1)
        run.tick()
        #expect(run.closed.isEmpty)
        run.now += .seconds(1)
        run.tick()
        #expect(run.closed == [identity])
    }

    /// Another challenge is raised between the answer and the failure.
    @Test func aFailedLoginAfterAProxyChallengeRaisesTheWeakerScheme() throws {
        var run = try run(proxy: wayOut)
        let fetch = try run.fetch("https://h/", subscription: pinning)
        run.challenge(fetch, "Negotiate, Basic realm=\"r\"")
        run.answer(fetch, .credential(.proposed))
        #expect(run.last(fetch)?.handshake?.scheme == .negotiate)
        run.challengeFromProxy(fetch)
        run.answer(fetch, user: "out", "pw")
        run.fail(fetch, .untrusted(1, []))
        run.answer(fetch, trust(1))
        run.fail(fetch, TransferFailure(.cannotConnect, "detail", cause: .noTicket))
        #expect(run.asksAbout(fetch) == .httpBasic)
    }

    @Test func aTicketIsBoundToTheCertificateOfTheChallenger() throws {
        var run = try run(proxy: wayOut)
        let fetch = try run.fetch("https://h/")
        run.receive(fetch, 401, [HeaderField("WWW-Authenticate", "Negotiate")]) { $0.serverEndPoint = [1, 2, 3] }
        #expect(run.last(fetch)?.handshake?.serverEndPoint == [1, 2, 3])
    }

    /// The server end point of a forwarded response does not identify the proxy's certificate.
    @Test func aTicketForAProxyHasNoChannelBinding() throws {
        var run = try run(proxy: try ProxyEndpoint("http://p:3128"))
        let fetch = try run.fetch("http://i/")
        run.receive(fetch, 407, [HeaderField("Proxy-Authenticate", "Negotiate")]) {
            ($0.isFromProxy, $0.serverEndPoint) = (true, [1, 2, 3])
        }
        #expect(run.last(fetch)?.handshake?.target == .proxy)
        #expect(run.last(fetch)?.handshake?.serverEndPoint == nil)
    }

    @Test("Rule O2: after a refused ticket no weaker scheme is used silently")
    func refusedTicketsCauseNoWeakerSchemeEither() throws {
        var run = try run()
        let stored = try run.fetch("https://h/a/")
        run.challenge(stored)
        run.answer(stored, user: "bob", "pw")
        run.respond(stored, 200)
        let fetch = try run.fetch("https://h/") {
            $0.interaction = .none
            $0.preemption = .never
        }
        run.challenge(fetch, "Negotiate, Basic realm=\"r\"")
        run.challenge(fetch, "Negotiate, Basic realm=\"r\"")
        #expect(run.results[fetch]?.response.status == 401)
        #expect(run.requests[fetch]?.count == 2)
    }
}
