import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Digest through whole fetches: responses to challenges, and `Authentication-Info`; SECURITY-RULES D4, D5, D7 and D12 to
/// D19.
@Suite struct DigestFetchTests {
    private static let plain = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
    /// The proofs for bob's first request for `/a/page`, without and with the body `welcome`.
    private static let proof = "11acb0c36eb90e564cd74f1c8a47a001"
    private static let bodyProof = "9092671dedebfa67e8d6966c371ecfce"

    /// Returns a run in which bob has just answered `challenge`.
    private func answered(
        _ challenge: String = plain, session: SessionCache = SessionCache(),
        change: (inout FetchRunParams) -> Void = { _ in }
    ) throws -> MachineRun {
        var run = try MachineRun(session: session, change: change)
        run.start()
        run.respond(401, ("WWW-Authenticate", challenge))
        run.answer(user: "bob", "pw")
        return run
    }

    /// Returns the `Authorization` field of the first request for `url`.
    private func preemptive(_ url: String, _ session: SessionCache) throws -> String? {
        var run = try MachineRun(url, session: session)
        run.start()
        return run.authorizations[0]
    }

    @Test("Rule D4: auth-int covers the body of the request, even an empty one")
    func theBodyOfTheRequestIsCoveredAnEmptyOneToo() throws {
        let challenge = "Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\""
        let post = try answered(challenge) {
            $0.method = "POST"
            $0.body = Array("body".utf8)
        }
        #expect(post.authorizations[1]?.hasSuffix("response=\"0d82179da7567ebbb3dc363cd29dd418\"") == true)
        let get = try answered(challenge)
        #expect(get.authorizations[1]?.hasSuffix("response=\"011f2b9ef52d80b838b9f9e78876f4dc\"") == true)
    }

    @Test("Rule D5: two fetches of one session never share a count")
    func twoFetchesOfOneSessionNeverShareACount() throws {
        var run = try answered()
        run.respond(200)
        for count in 2...4 {
            var next = try MachineRun("http://h/b", session: run.session)
            next.start()
            #expect(next.authorizations[0]?.contains("nc=0000000\(count), ") == true)
            run.session = next.session
        }
    }

    @Test(
        "Rule D7: the uri is the target of the request line",
        arguments: [
            (nil, "http://h/a?b=%22", "uri=\"/a?b=%22\""), ("http://p:1", "http://h/a?b", "uri=\"/a?b\""),
            ("http://p:1", "http://h:80/", "uri=\"/\""), ("http://p:1", "https://h/a", "uri=\"/a\""),
        ])
    func theUriIsTheTargetOfTheRequestLine(proxy: String?, url: String, uri: String) throws {
        var params = FetchRunParams(url: url)
        params.credential = Mufasa.credential
        let request = try FetchRequest(params, subscription: nil)
        let rule = ProxyRule(endpoint: try proxy.map { try ProxyEndpoint($0) })
        let environment = FetchEnvironment(now: .zero, proxy: rule, clientNonces: .fixed("c"))
        var (machine, context) = (FetchMachine(SharedFetchRequest(request)), FetchContext(environment: environment))
        _ = machine.handle(.started, &context)
        let field = HeaderField("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"")
        let command = try #require(
            machine.handle(.received(TransferResponse(status: 401, headers: [field])), &context))
        guard case .transfer(let request) = command else { return #expect(Bool(false)) }
        #expect(try #require(request.authorization).revealed.contains("\(uri), "))
        #expect(machine.logins.outgoing.server?.digestExchange.map { "uri=\"\($0.requestTarget)\"" } == uri)
    }

    @Test("Rule D11: a credential that cannot be encoded is not sent, and the respondent is told")
    func aCredentialThatCannotBeEncodedIsNotSentAndTheRespondentIsTold() throws {
        var run = try MachineRun()
        run.start()
        run.respond(401, ("WWW-Authenticate", Self.plain))
        run.answer(user: "Łu\u{7F}kasz", "pw")
        #expect(run.requests.count == 1)
        #expect(run.challenges.last?.error == .credentialNotUsable)
    }

    @Test("Rule D12: stale uses the new nonce without a question, at most twice", arguments: ["true", "TRUE", "True"])
    func staleUsesTheNewNonceAndAsksNoQuestion(value: String) throws {
        var run = try answered()
        for number in 1...3 {
            #expect(run.challenges.count == 1)
            let challenge = "Digest realm=\"r\", nonce=\"\(number)\", qop=\"auth\", stale=\(value)"
            run.respond(401, ("WWW-Authenticate", challenge))
            #expect(run.requests.count == min(2 + number, 4))
        }
        #expect(run.authorizations[2]?.contains("nonce=\"1\"") == true)
        #expect(run.authorizations[3]?.contains("nonce=\"2\"") == true)
        #expect(run.challenges.count == 2)
    }

    /// Otherwise an attacker in between could have the same password hashed with an algorithm of its choice.
    @Test("Rule D12: stale does not change to a weaker algorithm", arguments: [("algorithm=SHA-256", "pw")])
    func staleDoesNotChangeToAWeakerAlgorithm(parameter: String, password: String) throws {
        var run = try MachineRun()
        run.start()
        run.respond(401, ("WWW-Authenticate", "\(Self.plain), \(parameter)"))
        run.answer(user: "bob", password)
        run.respond(401, ("WWW-Authenticate", "Digest realm=\"r\", nonce=\"m\", qop=\"auth\", stale=true"))
        #expect(run.requests.count == 2)
        #expect(run.isAsking)
    }

    @Test("Rule D12: stale does not change to RFC 2069, nor to a challenge that cannot carry the user")
    func staleDoesNotChangeToRFC2069NorToAChallengeThatCannotCarryTheUser() throws {
        let stale = "Digest realm=\"r\", nonce=\"m\", stale=true"
        for (challenge, user) in [("\(stale)", "bob"), ("\(stale), qop=\"auth\"", "b\u{7F}")] as [(String, ExactText)] {
            var run = try MachineRun()
            run.start()
            run.respond(401, ("WWW-Authenticate", "\(Self.plain), charset=UTF-8"))
            run.answer(user: user, "pw")
            run.respond(401, ("WWW-Authenticate", challenge))
            #expect(run.requests.count == 2)
            #expect(run.isAsking)
        }
    }

    @Test(
        "Rule D13: a new challenge without stale counts as a refusal",
        arguments: ["", ", stale=false", ", stale=\"\""])
    func withoutStaleThePasswordWasWrong(stale: String) throws {
        var run = try answered()
        run.respond(401, ("WWW-Authenticate", "Digest realm=\"r\", nonce=\"m\", qop=\"auth\"\(stale)"))
        #expect(run.requests.count == 2)
        #expect(run.challenges.last?.previousFailureCount == 1)
    }

    @Test("Rules D14 and R16: the next request uses the announced nonce and counts from one")
    func theNextRequestUsesTheAnnouncedNonceAndCountsFromOne() throws {
        var run = try answered()
        run.respond(200, ("Authentication-Info", "qop=auth, nextnonce=\"a, \\\"b\\\"\""))
        let text = try #require(try preemptive("http://h/b", run.session))
        #expect(text.contains("nonce=\"a, \\\"b\\\"\", uri=\"/b\", qop=auth, nc=00000001, "))
    }

    @Test(
        "Rule D14: a malformed nextnonce is not used",
        arguments: ["nextnonce=\"\"", "nextnonce=a, nextnonce=b", "nextnonce=\"a", "Digest nextnonce=a", ""])
    func aMalformedNextnonceIsNotUsed(info: String) throws {
        var run = try answered()
        run.respond(200, ("Authentication-Info", info))
        #expect(run.result?.response.status == 200)
        let text = try #require(try preemptive("http://h/b", run.session))
        #expect(text.contains("nonce=\"n\", uri=\"/b\", qop=auth, nc=00000002"))
    }

    @Test(
        "Rule D15: a right proof is accepted",
        arguments: [
            (proof, ""), (proof, ", qop=auth, nc=00000001"), (bodyProof, ", qop=auth-int"),
            (bodyProof, ", qop=\"AUTH-INT\""),
            ("11ACB0C36EB90E564CD74F1C8A47A001", ", unknown=1"),
        ])
    func aRightProofIsAccepted(rspauth: String, more: String) throws {
        var run = try answered()
        run.respond(200, ("Authentication-Info", "rspauth=\"\(rspauth)\"\(more)"), body: "welcome")
        #expect(run.result?.response.status == 200)
        #expect(run.session.count == 1)
    }

    private static let wrongProofs = [
        "rspauth=\"\(bodyProof)\"", "rspauth=\"\(proof)\", qop=auth-int", "rspauth=\"\(proof)\", qop=other",
        "rspauth=\"\"", "rspauth=\"\(proof)0\"", "rspauth=\(proof), rspauth=\(bodyProof)",
        "nextnonce=\"m\", rspauth=\"0\"",
    ]

    private func info(_ text: String) -> HeaderBlock { [HeaderField("Authentication-Info", text)] }

    @Test("Rules D14, D15 and R16: the trailer section counts as the header section")
    func theTrailerSectionCountsAsTheHeaderSection() throws {
        var run = try answered()
        run.respond(TransferResponse(status: 200, body: Array("welcome".utf8))) {
            $0.trailers = info("rspauth=\"\(Self.bodyProof)\", qop=auth-int, nextnonce=\"next\"")
        }
        #expect(run.result?.response.status == 200)
        #expect(
            try #require(try preemptive("http://h/b", run.session)).contains(
                "nonce=\"next\", uri=\"/b\", qop=auth, nc=00000001"))
    }

    @Test("Rule D15: a wrong proof in the trailer section ends the fetch", arguments: wrongProofs)
    func aWrongProofInTheTrailerSectionEndsTheFetch(text: String) throws {
        var run = try answered()
        run.respond(TransferResponse(status: 200, body: Array("welcome".utf8))) {
            // A right proof before the body does not replace it.
            $0.headers = info("rspauth=\"\(Self.proof)\"")
            $0.trailers = info(text)
        }
        #expect(run.failure == .serverNotAuthentic)
        #expect(run.session.count == 0)
    }

    /// The decoded body differs from the bytes that the server hashed: the port checks the proof with those.
    @Test("Rule D15: for a decoded body only a proof that excludes the body is checked again")
    func onlyAProofThatExcludesTheBodyIsCheckedForADecodedBody() throws {
        for (text, isTaken) in [
            ("rspauth=\"\(Self.proof)\", qop=auth-int", true), ("rspauth=\"\(Self.bodyProof)\"", false),
        ] {
            var run = try answered()
            run.respond(TransferResponse(status: 200, headers: info(text), body: Array("welcome".utf8))) {
                $0.isDecoded = true
            }
            #expect((run.failure == nil) == isTaken)
        }
    }

    /// The reader of a streamed body compares the proof at the end of the body.
    @Test(
        "Rule D15: the proof of a streamed body is checked at its end",
        arguments: [
            ("rspauth=\"\(proof)\"", true), ("rspauth=\"\(bodyProof)\", qop=auth-int", true), ("", true),
            ("rspauth=\"\(bodyProof)\"", false), ("rspauth=\"\(proof)\", qop=auth-int", false),
        ])
    func theProofOfAStreamedBodyIsCheckedAtItsEnd(text: String, isRight: Bool) throws {
        let run = try answered()
        let proof = try #require(run.requests.last?.proofs.first)
        #expect(run.requests.last?.proofs.count == 1)
        for parts in [["welcome"], ["wel", "", "come"]] {
            let check = proof.makeCheck()
            for part in parts { Array(part.utf8).withUnsafeBytes { check.update($0) } }
            #expect(check.isRight(info(text)) == isRight)
        }
        #expect(run.requests.first?.proofs == [])
    }

    /// By then, the fetch has ended, and its login is remembered.
    @Test("Rules D14 and D15: the trailer section of a streamed body counts")
    func theTrailerSectionOfAStreamedBodyCounts() throws {
        for (text, nonce) in [
            ("nextnonce=\"next\", rspauth=\"\(Self.proof)\"", "next"), ("nextnonce=\"x\", rspauth=\"0\"", nil),
        ] {
            var run = try answered()
            run.respond(TransferResponse(status: 200)) {
                $0.openBody = OpenBody(transfer: TransferID(value: 1), announcedBytes: nil)
            }
            let proofs = try #require(run.result?.proofs)
            #expect(run.session.count == 1 && proofs.count == 1)
            _ = proofs[0].makeCheck().isRight(info(text))
            _ = run.table.recordEnd(of: proofs)
            #expect(run.session.count == (nonce == nil ? 0 : 1))
            let sent = try preemptive("http://h/b", run.session)
            #expect(
                sent.map { $0.contains("nonce=\"next\", uri=\"/b\", qop=auth, nc=00000001") } == nonce.map { _ in true }
            )
        }
    }

    @Test("Rule D15: a wrong proof ends the fetch and nothing is remembered", arguments: wrongProofs, [200, 302, 500])
    func aWrongProofEndsTheFetchAndNothingIsRemembered(info: String, status: Int) throws {
        var run = try answered()
        run.respond(status, ("Authentication-Info", info), ("Location", "/elsewhere"), body: "welcome")
        #expect(run.failure == .serverNotAuthentic)
        #expect(run.requests.count == 2)
        #expect(run.session.count == 0)
        #expect(run.effects.isEmpty)
    }

    @Test("Rule D15: a changed body is not accepted")
    func aChangedBodyIsNotAccepted() throws {
        var run = try answered("Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\"")
        run.respond(200, ("Authentication-Info", "rspauth=\"\(Self.bodyProof)\""), body: "Welcome")
        #expect(run.failure == .serverNotAuthentic)
    }

    @Test("Rule D15: an older session entry stays, and Basic has no proof")
    func anOlderSessionEntryStaysAndBasicHasNoProof() throws {
        var run = try answered()
        run.respond(200)
        var next = try MachineRun(session: run.session)
        next.start()
        next.respond(200, ("Authentication-Info", "rspauth=\"\(Self.proof)\""))
        #expect(next.failure == .serverNotAuthentic)
        #expect(next.session.count == 1)
        var basic = try answered("Basic realm=\"r\"")
        basic.respond(200, ("Authentication-Info", "rspauth=\"0\""))
        #expect(basic.result?.response.status == 200)
    }

    @Test("Rule D16: outside its domain nothing is sent before a challenge")
    func outsideItsDomainNothingIsSentBeforeAChallenge() throws {
        var run = try answered(Self.plain + ", domain=\"/a http://h/c/ http://other/\"")
        run.respond(200)
        for url in ["http://h/a/x", "http://h/c/"] { #expect(try preemptive(url, run.session) != nil) }
        for url in ["http://h/b", "http://h/", "http://other/"] { #expect(try preemptive(url, run.session) == nil) }
    }

    @Test("Rule D19: no stored credential goes to a weaker scheme")
    func noStoredCredentialIsSentByAWeakerScheme() throws {
        var run = try answered()
        run.respond(200)
        var next = try MachineRun("http://h/a/x", session: run.session)
        next.start()
        next.respond(401, ("WWW-Authenticate", "Basic realm=\"r\""))
        #expect(next.requests.count == 1)
        #expect(next.isAsking)
    }
}

/// A nonce of an earlier fetch, at a server that does not say `stale`.
@Suite struct RememberedNonceTests {
    private func wants(_ nonce: Int) -> String { "Digest realm=\"r\", nonce=\"\(nonce)\", qop=\"auth\"" }

    /// Returns a run with a login that was accepted with the nonce 1.
    private func session() throws -> TableRun {
        var run = TableRun()
        let first = try run.fetch("http://h/a")
        run.challenge(first, wants(1))
        run.answer(first, user: "bob", "old")
        run.respond(first, 200)
        return run
    }

    @Test("Rule D13: the refusal of a remembered nonce leads to one silent attempt with the new one")
    func theRefusalOfARememberedNonceLeadsToOneSilentAttempt() throws {
        var run = try session()
        let fetch = try run.fetch("http://h/b")
        run.challenge(fetch, wants(2))
        #expect(run.sent.last?.contains("nonce=\"2\"") == true)
        run.respond(fetch, 200)
        #expect(run.results[fetch]?.response.status == 200)
        #expect(run.challenges.count == 1 && run.table.sessionCount == 1)
        let next = try run.fetch("http://h/b")
        #expect(run.last(next)?.authorization?.revealed.contains("nonce=\"2\"") == true)
    }

    @Test("Rules 7 and D13: its refusal counts", arguments: [2, 3])
    func itsRefusalCounts(nonce: Int) throws {
        var run = try session()
        let fetch = try run.fetch("http://h/b")
        run.challenge(fetch, wants(2))
        run.challenge(fetch, wants(nonce))
        #expect(run.question(fetch)?.previousFailureCount == 1)
        #expect(run.sent.count == 3 && run.table.sessionCount == 0)
    }

    @Test("Rule D13: the same nonce, a weaker algorithm or another realm is no second attempt")
    func aWeakerChallengeIsNoSecondAttempt() throws {
        for challenge in [wants(1), "Digest realm=\"r\", nonce=\"2\"", "Digest realm=\"s\", nonce=\"2\", qop=\"auth\""]
        {
            var run = try session()
            let fetch = try run.fetch("http://h/b")
            run.challenge(fetch, challenge)
            #expect(run.sent.count == 2 && run.asking == [fetch], "\(challenge)")
        }
    }

    @Test(
        "Rules 22 and D13: a changed password costs one failed login more than with other schemes",
        arguments: [(Duration.zero, 3 + 1), (Limits.acceptanceAge, 1 + 1)])
    func aChangedPasswordCostsOneMore(age: Duration, failed: Int) throws {
        var run = try session()
        run.now = age
        let ids = try (1...20).map { try run.fetch("http://h/\($0)", client: $0) }
        var nonce = 2
        while let id = run.transferring.first {
            run.challenge(id, wants(nonce))
            nonce += 1
        }
        #expect(run.sent.count == 1 + failed)
        #expect(run.asking.count == 1)
        if let asked = run.asking.first { run.answer(asked, user: "bob", "new") }
        while let id = run.transferring.first { run.respond(id, 200) }
        #expect(ids.allSatisfy { run.results[$0]?.response.status == 200 })
        #expect(run.challenges.count == 2)
    }

    @Test("Rules 22 and D13: an old nonce of many requests leads to one attempt, and then all succeed")
    func anOldNonceOfManyRequests() throws {
        var run = try session()
        let ids = try (1...20).map { try run.fetch("http://h/\($0)", client: $0) }
        let before = run.transferring
        for id in before { run.challenge(id, wants(2)) }
        #expect(run.transferring == [before[0]])
        run.respond(before[0], 200)
        while let id = run.transferring.first {
            #expect(run.last(id)?.authorization?.revealed.contains("nonce=\"2\"") == true)
            run.respond(id, 200)
        }
        #expect(ids.allSatisfy { run.results[$0]?.response.status == 200 })
        #expect(run.challenges.count == 1 && run.sent.count == 1 + 3 + 20)
    }
}
