import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The sources of credentials, their storage in the session, and preemptive requests.
@Suite struct FetchCredentialTests {
    /// Returns a session in which bob has logged in at `http://h/a/page`.
    private func session(digest: Bool = false, user: ExactText = "bob", password: String = "pw") throws -> SessionCache
    {
        var run = try MachineRun()
        run.start()
        if digest { run.challengeDigest(nonce: "n") } else { run.challengeBasic() }
        run.answer(user: user, password)
        run.respond(200)
        return run.session
    }

    @Test("Rule 15: the fetch's own credential comes first and that of the URL second")
    func theFetchsOwnCredentialComesFirstAndThatOfTheURLSecond() throws {
        var run = try MachineRun("http://carol:url@h/") { $0.credential = login("bob", "own") }
        run.start()
        run.challengeBasic()
        run.challengeBasic()
        #expect(run.authorizations == [nil, basic("bob", "own"), basic("carol", "url")])
        run.challengeBasic()
        #expect(run.challenges[0].previousFailureCount == 2)
    }

    @Test("Rules 15 and R18: user and password of the URL are not sent before a challenge, and appear nowhere later")
    func userAndPasswordOfTheURLAreNotSentBeforeAChallengeAndNotShown() throws {
        var run = try MachineRun("http://carol:url@h/x")
        run.start()
        #expect(run.authorizations == [nil])
        #expect(run.requests[0].url.text == "http://h/x")
        run.challengeBasic()
        run.respond(200)
        #expect(run.result?.authentication == .init(method: .httpBasic, source: .url, user: "carol"))
        #expect(run.result?.url.text == "http://h/x")
    }

    @Test("Rule 16: a fetch below a path that was challenged needs one exchange")
    func theSecondFetchNeedsOneExchange() throws {
        var run = try MachineRun("http://h/a/other", session: session())
        run.start()
        run.respond(200)
        #expect(run.authorizations == [basic("bob", "pw")])
        #expect(run.result?.exchanges == 1)
        #expect(run.result?.authentication?.source == .session)
    }

    @Test("Rule 16: Digest continues with its nonce and a rising count")
    func digestContinuesWithItsNonceAndARisingCount() throws {
        var session = try session(digest: true)
        for count in ["00000002", "00000003"] {
            var run = try MachineRun("http://h/elsewhere", session: session)
            run.start()
            let sent = try #require(run.authorizations[0])
            #expect(sent.contains("nc=\(count)"))
            #expect(sent.contains("nonce=\"n\""))
            run.respond(200)
            session = run.session
        }
    }

    @Test("Rule 16: no session credential is sent for a fetch that names another user or password")
    func preemptionStopsWhenTheFetchNamesAnotherUser() throws {
        for (url, isPreemptive) in [
            ("http://carol@h/a/", false), ("http://carol:pw@h/a/", false), ("http://bob@h/a/", true),
            ("http://bob:pw@h/a/", true), ("http://bob:new@h/a/", false),
        ] {
            var run = try MachineRun(url, session: session())
            run.start()
            #expect((run.authorizations[0] != nil) == isPreemptive, "\(url)")
        }
    }

    @Test func aFetchThatNamesAUserIsNeverMadeAsAnother() throws {
        var run = try MachineRun(session: session()) { $0.credential = login("carol", "wrong") }
        run.start()
        run.challengeBasic()
        run.challengeBasic()
        #expect(run.authorizations == [nil, basic("carol", "wrong")])
        #expect(run.isAsking)
    }

    @Test("Rule 16: without preemption the session cache waits for the challenge")
    func preemptionCanBeSwitchedOff() throws {
        var run = try MachineRun(session: session()) { $0.preemption = .never }
        run.start()
        #expect(run.authorizations == [nil])
        run.challengeBasic()
        #expect(run.authorizations == [nil, basic("bob", "pw")])
    }

    @Test("Rule 3: without storage nothing is read or written")
    func withoutStorageNothingIsReadOrWritten() throws {
        var run = try MachineRun(session: session()) { $0.useStorage = false }
        run.start()
        run.challengeBasic()
        #expect(run.authorizations == [nil])
        #expect(run.challenges[0].proposedCredential == nil)
        run.answer(user: "carol", "other")
        run.respond(200)
        var next = try MachineRun("http://h/a/x", session: run.session)
        next.start()
        #expect(next.authorizations == [basic("bob", "pw")])
    }

    @Test("Rule 17: nothing is written before the server has accepted")
    func nothingIsWrittenBeforeTheServerHasAccepted() throws {
        for (status, persistence, count) in [
            (200, Persistence.forSession, 1), (403, .forSession, 1), (302, .permanent, 1), (200, .none, 0),
            (503, .forSession, 0), (408, .permanent, 0), (421, .forSession, 0), (425, .forSession, 0),
            (429, .permanent, 0),
        ] {
            var run = try MachineRun()
            run.start()
            run.challengeBasic()
            run.answer(user: "bob", "pw", persistence)
            #expect(run.session.count == 0)
            run.respond(status)
            #expect(run.session.count == count, "\(status) \(persistence)")
        }
    }

    @Test("Rules 25 and B7: a credential sent in the clear is remembered only if that was shown")
    func aCredentialSentInTheClearIsRememberedOnlyIfThatWasShown() throws {
        for (url, isAnswered, isRemembered) in [
            ("http://h/", false, false), ("http://h/", true, true), ("https://h/", false, true),
            ("http://localhost/", false, true), ("http://127.0.0.1/", false, true), ("http://[::1]/", false, true),
            ("http://127.evil.example/", false, false),
        ] {
            var run = try MachineRun(url) { if !isAnswered { $0.credential = login("bob", "pw") } }
            run.start()
            run.challengeBasic()
            if isAnswered { run.answer(user: "bob", "pw") }
            run.respond(200)
            #expect((run.session.count == 1) == isRemembered, "\(url) \(isAnswered)")
        }
    }

    @Test("Rule 17: a refused session credential is forgotten and proposed")
    func aRefusedSessionCredentialIsForgottenAndProposed() throws {
        var run = try MachineRun(session: session())
        run.start()
        run.challengeBasic()
        #expect(run.session.count == 0)
        #expect(run.challenges[0].previousFailureCount == 1)
        #expect(
            run.challenges[0].proposedCredential == ProposedCredential(user: "bob", hasPassword: true, source: .session)
        )
    }

    @Test("Rules 17 and R20: a newer password survives an older failure")
    func aNewerPasswordSurvivesAnOlderFailure() throws {
        var run = try MachineRun(session: session())
        run.start()
        run.session = try session(password: "newer")
        run.challengeBasic()
        #expect(run.authorizations == [basic("bob", "pw"), basic("bob", "newer")])
        run.respond(200)
        #expect(run.challenges.isEmpty)
    }

    @Test func aPreemptiveGuessForAnotherRealmIsNotAFailure() throws {
        var run = try MachineRun(session: session())
        run.start()
        run.challengeBasic("another realm")
        #expect(run.challenges[0].previousFailureCount == 0)
        #expect(run.challenges[0].protectionSpace.realm == "another realm")
        #expect(run.session.count == 1)
    }

    @Test func onlyAllowedMethodsAreUsedBeforeAndAfterAChallenge() throws {
        var run = try MachineRun(session: session()) { $0.methods = [.httpDigest] }
        run.start()
        #expect(run.authorizations == [nil])
        run.challengeBasic()
        #expect(run.result?.response.status == 401)
        #expect(run.requests.count == 1)
    }

    @Test func digestIsPreferredToBasicWhateverTheOrder() throws {
        var run = try MachineRun { $0.credential = login("bob", "pw") }
        run.start()
        run.respond(
            401, ("WWW-Authenticate", "Basic realm=\"r\""),
            ("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""))
        #expect(run.authorizations[1]?.hasPrefix("Digest ") == true)
    }

    @Test func aHiddenBasicInAQuotedStringSendsNothing() throws {
        var run = try MachineRun { $0.credential = login("bob", "pw") }
        run.start()
        run.respond(401, ("WWW-Authenticate", "Newauth realm=\"foo, Basic realm=evil\""))
        #expect(run.challenges.map(\.protectionSpace.authenticationMethod) == [.other])
        #expect(run.challenges[0].protectionSpace.realm == "foo, Basic realm=evil")
        run.answer(.useDefault)
        #expect(run.authorizations == [nil])
        #expect(run.result?.response.status == 401)
    }
}
