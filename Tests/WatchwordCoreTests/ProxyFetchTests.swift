import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Challenges of proxies, and their separation from those of servers: SEMANTICS rules 1, 7, 11, 12, 17, 19, 22 to 24.
@Suite struct ProxyFetchTests {
    private func named(_ credential: LoginCredential? = nil, url: String = "http://q:3128") -> ProxyChoice {
        .named(NamedProxy(url: url, credential: credential))
    }

    @Test("Rules 2 and 7: the proxy asks first, each counts its own failures, and each keeps its credential")
    func theProxyAsksFirstAndEachCountsItsOwnFailures() throws {
        var run = TableRun(proxy: wayOut)
        let fetch = try run.fetch()
        run.challengeFromProxy(fetch)
        #expect(run.question(fetch)?.protectionSpace.proxyType == .http)
        run.answer(fetch, user: "out", "wrong")
        run.challengeFromProxy(fetch)
        #expect(run.question(fetch)?.previousFailureCount == 1)
        run.answer(fetch, user: "out", "pw")
        run.challenge(fetch)
        #expect(run.question(fetch)?.previousFailureCount == 0)
        run.answer(fetch, user: "bob", "wrong")
        run.challenge(fetch)
        #expect(run.question(fetch)?.previousFailureCount == 1)
        run.answer(fetch, user: "bob", "pw")
        let logins = run.requests[fetch]?.map(\.proxyLogin)
        #expect(
            logins == [nil, basic("out", "wrong")] + Array(repeating: basic("out", "pw"), count: 3))
        #expect(run.sent == [basic("bob", "wrong"), basic("bob", "pw")])
        run.respond(fetch, 200)
        #expect(run.results[fetch]?.authentication?.user == "bob")
        #expect(run.results[fetch]?.proxyAuthentication?.user == "out")
    }

    @Test("Rule 28: the methods for the server do not restrict the proxy, if it has its own")
    func theMethodsForTheServerDoNotRestrictTheProxy() throws {
        var run = TableRun(proxy: wayOut)
        let fetch = try run.fetch {
            $0.methods = [.httpDigest]
            $0.proxyMethods = [.httpBasic]
        }
        run.challengeFromProxy(fetch)
        run.answer(fetch, user: "out", "pw")
        #expect(run.request(fetch)?.proxyLogin == basic("out", "pw"))
        run.challenge(fetch)
        #expect(run.results[fetch]?.unanswered?.schemes == [.init("Basic", .excluded)])
        let next = try run.fetch { $0.methods = [.httpDigest] }
        #expect(run.request(next)?.proxyLogin == nil)
    }

    @Test func theCredentialOfAProxyReplacesTheUserInformationOfItsURL() throws {
        var params = FetchRunParams(url: "http://h/")
        let malformed = Array("us%zz:pw".utf8).withUnsafeBytes { Secret(copying: $0) }
        let given = LoginCredential(user: "out", password: malformed)
        params.proxy = .named(NamedProxy(url: "http://q:3128", userInfo: malformed, credential: given))
        #expect(try FetchRequest(params, subscription: nil).proxyCredential == given)
        params.proxy = .named(NamedProxy(url: "http://q:3128", userInfo: malformed))
        #expect(throws: FetchFailure.self) { try FetchRequest(params, subscription: nil) }
    }

    @Test("Rules 1 and R13: a 407 from the server is a response")
    func a407FromTheServerIsAResponse() throws {
        for proxy in [nil, wayOut] {
            var run = TableRun(proxy: proxy)
            let fetch = try run.fetch("https://h/")
            run.respond(fetch, 407, ("Proxy-Authenticate", "Basic realm=\"trap\""))
            #expect(run.results[fetch]?.response.status == 407)
            #expect(run.challenges.isEmpty)
        }
    }

    @Test("Rules R11 and R14: a 407 of the proxy without Proxy-Authenticate is an ordinary response")
    func a407OfTheProxyWithoutProxyAuthenticateIsAnOrdinaryResponse() throws {
        for fields in [[], [HeaderField("WWW-Authenticate", "Basic realm=\"r\"")]] as [[HeaderField]] {
            var run = TableRun(proxy: wayOut)
            let fetch = try run.fetch()
            run.receive(fetch, 407, fields) { $0.isFromProxy = true }
            #expect(run.results[fetch]?.response.status == 407)
            #expect(run.challenges.isEmpty)
        }
    }

    /// A proxy attributes all requests through a tunnel to the user who logged in for it.
    @Test("Rule L2: each login of a tunnel is an identity of its own")
    func aTunnelWithALoginServesNoOtherLogin() throws {
        var run = TableRun(proxy: wayOut)
        func identity(_ user: ExactText?) throws -> ConnectionIdentity? {
            let fetch = try run.fetch("https://h/") { params in
                params.proxy = named(user.map { LoginCredential(user: $0, password: secret("pw")) })
            }
            if user != nil { run.challengeFromProxy(fetch) }
            #expect(run.last(fetch)?.proxyLogin == user.map { basic($0, "pw") })
            defer { run.respond(fetch, 200) }
            return run.identity(fetch)
        }
        let (anonymous, bob, carol) = (try identity(nil), try identity("bob"), try identity("carol"))
        #expect(anonymous == ConnectionIdentity.none)
        #expect(bob != anonymous && carol != anonymous && bob != carol)
        #expect(try identity("bob") == bob)
    }

    @Test("Rule R15: a login for one proxy does not go to the next one")
    func aLoginForOneProxyDoesNotGoToTheNextOne() throws {
        var run = TableRun(proxy: wayOut)
        let fetch = try run.fetch()
        run.challengeFromProxy(fetch)
        run.answer(fetch, user: "out", "pw")
        #expect(run.last(fetch)?.proxyLogin == basic("out", "pw"))
        // The configuration is read again while the fetch is under way.
        run.proxy = ProxyRule(endpoint: ProxyEndpoint(type: .http, host: "q", port: 3128))
        run.respond(fetch, 302, ("Location", "/next"))
        #expect(run.last(fetch)?.proxy?.host == "q")
        #expect(run.last(fetch)?.proxyLogin == nil)
    }

    @Test func aCredentialForThisMachineIsNotForALocalhostBehindAProxy() throws {
        var run = TableRun()
        let fetch = try run.fetch("http://localhost/a/page")
        run.challenge(fetch)
        run.answer(fetch, user: "bob", "pw")
        run.respond(fetch, 200)
        #expect(try run.first("http://localhost/a/x")?.authorization?.revealed == basic("bob", "pw"))
        run.proxy = ProxyRule(endpoint: wayOut)
        let behind = try run.fetch("http://localhost/a/x")
        #expect(run.last(behind)?.authorization == nil)
        run.challenge(behind)
        #expect(run.last(behind)?.authorization == nil)
        #expect(run.question(behind)?.proposedCredential == nil)
    }

    @Test func aProxyThatGivesAWrongProofIsNotBelieved() throws {
        var run = TableRun(proxy: wayOut)
        let fetch = try run.fetch()
        run.challengeFromProxy(fetch, "Digest realm=\"way out\", nonce=\"1\", qop=\"auth\"")
        run.answer(fetch, user: "out", "pw")
        run.respond(fetch, 200, ("Proxy-Authentication-Info", "rspauth=\"\(String(repeating: "0", count: 32))\""))
        #expect(run.failures[fetch]?.kind == .serverNotAuthentic)
        #expect(run.table.sessionCount == 0)
    }

    @Test("Rule 2: an answer to a login challenge survives the challenge of the proxy")
    func anAnswerToALoginChallengeSurvivesTheChallengeOfTheProxy() throws {
        var run = TableRun(proxy: wayOut)
        let fetch = try run.fetch()
        run.challenge(fetch)
        run.answer(fetch, user: "bob", "pw")
        run.challengeFromProxy(fetch)
        run.answer(fetch, user: "out", "pw")
        #expect(run.last(fetch)?.authorization?.revealed == basic("bob", "pw"))
        #expect(run.last(fetch)?.proxyLogin == basic("out", "pw"))
        run.respond(fetch, 200)
        #expect(run.table.sessionCount == 2)
        #expect(run.challenges.count == 2)
    }

    @Test("Rule 2: an answer to a login challenge survives a stale nonce of the proxy")
    func anAnswerToALoginChallengeSurvivesAStaleNonceOfTheProxy() throws {
        func digest(_ nonce: ExactText, _ isStale: Bool = false) -> String {
            "Digest realm=\"way out\", nonce=\"\(nonce)\", qop=\"auth\"\(isStale ? ", stale=true" : "")"
        }
        var run = TableRun(proxy: wayOut)
        let fetch = try run.fetch()
        run.challengeFromProxy(fetch, digest("1"))
        run.answer(fetch, user: "out", "pw")
        #expect(run.last(fetch)?.proxyLogin?.contains("uri=\"http://h/a/page\"") == true)
        run.challenge(fetch)
        run.answer(fetch, user: "bob", "pw")
        run.challengeFromProxy(fetch, digest("2", true))
        #expect(run.last(fetch)?.proxyLogin?.contains("nonce=\"2\"") == true)
        #expect(run.last(fetch)?.authorization?.revealed == basic("bob", "pw"))
        run.respond(fetch, 200)
        #expect(run.challenges.count == 2)
    }

    @Test func aTunnelIsAskedForWithAProofAboutItself() throws {
        var run = TableRun(proxy: wayOut)
        let fetch = try run.fetch("https://h/")
        run.challengeFromProxy(fetch, "Digest realm=\"r\", nonce=\"1\", qop=\"auth\"")
        run.answer(fetch, user: "out", "pw")
        #expect(run.last(fetch)?.proxyLogin?.contains("uri=\"h:443\"") == true)
    }

    @Test("Rules 11, 12 and 14: continue and reject return the 407 of the proxy, cancel fails")
    func continueAndCancelOfAProxyChallenge() throws {
        for answer in [ChallengeAnswer.proceed, .reject, .cancel] {
            var run = TableRun(proxy: wayOut)
            let fetch = try run.fetch()
            run.challengeFromProxy(fetch)
            run.answer(fetch, answer)
            #expect(run.results[fetch]?.response.status == (answer == .cancel ? nil : 407))
            #expect(run.failures[fetch]?.kind == (answer == .cancel ? .challengeCancelled : nil))
        }
    }

    @Test("Rules 17 and B6: the session remembers the credential of the configured proxy")
    func theSessionRemembersTheCredentialOfTheConfiguredProxy() throws {
        var run = TableRun(proxy: wayOut)
        let fetch = try run.fetch()
        run.challengeFromProxy(fetch)
        run.answer(fetch, user: "out", "pw")
        run.respond(fetch, 200)
        let later = try run.fetch("http://elsewhere/")
        #expect(run.last(later)?.proxyLogin == basic("out", "pw"))
        #expect(run.last(later)?.authorization == nil)
    }

    @Test("Rule 19: a credential for a server is not sent to a proxy of the same name")
    func aCredentialForAServerIsNotSentToAProxyOfTheSameName() throws {
        let proxy = ProxyEndpoint(type: .http, host: "h", port: 80)
        for isServerFirst in [true, false] {
            var run = TableRun()
            run.proxy.endpoint = isServerFirst ? nil : proxy
            let first = try run.fetch(isServerFirst ? "http://h/" : "http://i/")
            if isServerFirst {
                run.challenge(first, "Basic realm=\"x\"")
            } else {
                run.challengeFromProxy(first, "Basic realm=\"x\"")
            }
            run.answer(first, user: "bob", "pw")
            run.respond(first, 200)
            run.proxy.endpoint = isServerFirst ? proxy : nil
            let second = try run.fetch(isServerFirst ? "http://i/" : "http://h/")
            if isServerFirst {
                run.challengeFromProxy(second, "Basic realm=\"x\"")
            } else {
                run.challenge(second, "Basic realm=\"x\"")
            }
            #expect(run.asking == [second])
            #expect(run.requests[second]?.count == 1)
        }
    }

    @Test("Rule 22: a wrong password of twenty fetches is sent once to the proxy and once to the server")
    func aWrongPasswordOfTwentyFetchesIsTriedOnceAtTheProxyAndOnceAtTheServer() throws {
        var run = TableRun(proxy: wayOut)
        let ids = try (1...20).map { try run.fetch("http://h/a/\($0)", client: $0) }
        for id in ids { run.challengeFromProxy(id) }
        #expect(run.asking == [ids[0]])
        run.answer(ids[0], user: "out", "wrong")
        #expect(run.transferring == [ids[0]])
        run.challengeFromProxy(ids[0])
        run.answer(ids[0], user: "out", "pw")
        run.challenge(ids[0])
        #expect(run.transferring.count == 3)
        while let id = run.transferring.first {
            #expect(run.last(id)?.proxyLogin == basic("out", "pw"))
            run.challenge(id)
        }
        #expect(run.asking == [ids[0]])
        run.answer(ids[0], user: "bob", "wrong")
        #expect(run.transferring == [ids[0]])
        run.challenge(ids[0])
        run.answer(ids[0], user: "bob", "pw")
        run.serve(password: "pw")
        #expect(run.results.count == 20)
        #expect(run.sent.filter { $0 == basic("bob", "wrong") }.count == 1)
        #expect(run.challenges.count == 4)
    }

    @Test("Rule 23: the fetch's own proxy credential is for that proxy only")
    func theFetchsOwnProxyCredentialIsForThatProxyOnly() throws {
        var run = TableRun(proxy: wayOut)
        let own = try run.fetch { $0.proxy = self.named(login("out", "own")) }
        run.challengeFromProxy(own)
        #expect(run.last(own)?.proxyLogin == basic("out", "own"))
        run.challenge(own)
        #expect(run.asking == [own])
        run.answer(own, user: "bob", "pw")
        run.respond(own, 200)
        #expect(run.table.sessionCount == 0)
        let server = try run.fetch { $0.credential = login("bob", "own") }
        run.challengeFromProxy(server)
        #expect(run.asking == [server])
        #expect(run.last(server)?.proxyLogin == nil)
    }

    @Test("Rule 24: no stored credential goes to or through a proxy that the fetch names")
    func noStoredCredentialIsSentToOrThroughAProxyThatTheFetchNames() throws {
        var run = TableRun()
        let stored = try run.fetch()
        run.challenge(stored)
        run.answer(stored, user: "bob", "pw")
        run.respond(stored, 200)
        let fetch = try run.fetch { $0.proxy = self.named() }
        #expect(run.last(fetch)?.authorization == nil)
        run.challenge(fetch)
        #expect(run.question(fetch)?.proposedCredential == nil)
        #expect(run.question(fetch)?.persistenceAllowed == [Persistence.none])
        run.answer(fetch, user: "bob", "typed")
        run.challengeFromProxy(fetch)
        #expect(run.question(fetch)?.persistenceAllowed == [Persistence.none])
        run.answer(fetch, user: "out", "typed", .permanent)
        run.respond(fetch, 200)
        #expect(run.table.sessionCount == 1)
        run.proxy.endpoint = ProxyEndpoint(type: .http, host: "q", port: 3128)
        let configured = try run.fetch { $0.proxy = self.named() }
        #expect(run.last(configured)?.authorization?.revealed == basic("bob", "pw"))
    }

    @Test("Rule 23: a redirect to a host without a proxy drops the proxy credential")
    func aRedirectToAHostWithoutAProxyTakesNoProxyCredentialAlong() throws {
        var run = TableRun(proxy: wayOut)
        run.proxy.exceptions = [try HostPattern("inside")]
        let fetch = try run.fetch()
        run.challengeFromProxy(fetch)
        run.answer(fetch, user: "out", "pw", .none)
        run.respond(fetch, 302, ("Location", "http://inside/"))
        #expect(run.last(fetch)?.proxy == nil)
        run.respond(fetch, 302, ("Location", "http://h/b"))
        #expect(run.last(fetch)?.proxy != nil)
        #expect(run.last(fetch)?.proxyLogin == nil)
        run.respond(fetch, 302, ("Location", "http://i/c"))
        run.respond(fetch, 200)
        #expect(run.results[fetch]?.response.status == 200)
    }

    @Test func aLoginForTheProxyIsSentForTheNextServerToo() throws {
        var run = TableRun(proxy: wayOut)
        let fetch = try run.fetch()
        run.challengeFromProxy(fetch)
        run.answer(fetch, user: "out", "pw", .none)
        run.respond(fetch, 302, ("Location", "https://i/c"))
        #expect(run.last(fetch)?.proxyLogin == basic("out", "pw"))
        #expect(run.challenges.count == 1)
    }

    @Test func socksAsksByRefusingToContinue() throws {
        var run = TableRun(proxy: ProxyEndpoint(type: .socks, host: "p", port: 1080))
        let refused = TransferFailure(.cannotConnect, "detail", cause: .proxyLoginRefused)
        let fetch = try run.fetch()
        run.fail(fetch, refused)
        #expect(run.question(fetch)?.protectionSpace.proxyType == .socks)
        #expect(run.question(fetch)?.offers.isEmpty == true)
        run.answer(fetch, user: "out", "wrong")
        #expect(run.last(fetch)?.proxy?.password?.revealed == "wrong")
        run.fail(fetch, refused)
        #expect(run.question(fetch)?.previousFailureCount == 1)
        run.answer(fetch, user: "out", "wrong")
        #expect(run.question(fetch)?.error == .credentialAlreadyRefused)
        run.answer(fetch, user: "out", "pw")
        run.respond(fetch, 200)
        let later = try run.fetch("http://i/")
        #expect(run.last(later)?.proxy?.password?.revealed == "pw")
        run.fail(later, refused)
        run.answer(later, .proceed)
        #expect(run.failures[later]?.kind == .proxyFailed)
    }
}
