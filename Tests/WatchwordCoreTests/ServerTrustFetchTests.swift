import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Certificates that do not verify: SEMANTICS rules 3, 11, 13, 17, 20, 24; SECURITY-RULES C8 and C9.
@Suite struct ServerTrustFetchTests {
    private func distrusted(_ run: inout TableRun, _ key: UInt8 = 1, client: Int = 1) throws -> FetchID {
        let fetch = try run.fetch("https://h/a/", client: client, subscription: pinning)
        run.fail(fetch, .untrusted(key))
        return fetch
    }

    private func remembering(_ persistence: Persistence) throws -> TableRun {
        var run = TableRun()
        let fetch = try distrusted(&run)
        run.answer(fetch, trust(1, persistence))
        run.respond(fetch, 200)
        return run
    }

    @Test func theAnswerHoldsForItsKeyAndItsFetch() throws {
        var run = TableRun()
        let fetch = try distrusted(&run)
        #expect(run.question(fetch)?.connection == .serverTrust(facts(1)))
        run.answer(fetch, trust(1))
        #expect(run.last(fetch)?.trustedKey == 1)
        let identity = try #require(run.identity(fetch))
        run.respond(fetch, 200)
        #expect(run.closed.contains(identity))
        let later = try run.fetch("https://h/a/", subscription: pinning)
        #expect(run.last(later)?.trust == .verify)
    }

    @Test("Rules 11, 13 and 14: continue, default and reject mean normal verification")
    func everyOtherAnswerMeansNormalVerification() throws {
        for answer in [ChallengeAnswer.proceed, .useDefault, .reject] {
            var run = TableRun()
            let fetch = try distrusted(&run)
            run.answer(fetch, answer)
            if answer == .useDefault { run.answer(fetch, answer) }
            #expect(run.failures[fetch]?.kind == .serverNotTrusted)
            #expect(run.requests[fetch]?.count == 1)
        }
    }

    @Test("Rule 3: a client that does not declare serverTrust is not asked")
    func aClientThatDoesNotDeclareServerTrustIsNotAsked() throws {
        var run = TableRun()
        let fetch = try run.fetch("https://h/")
        run.fail(fetch, .untrusted(1))
        #expect(run.failures[fetch]?.kind == .serverNotTrusted)
        #expect(run.challenges.isEmpty)
    }

    @Test("Rule 26: an answer for another key or of another type accepts no certificate")
    func anAnswerForAnotherKeyOrOfAnotherTypeAcceptsNoCertificate() throws {
        var run = TableRun()
        let fetch = try distrusted(&run)
        run.answer(fetch, trust(2))
        #expect(run.question(fetch)?.error == .fingerprintWrong)
        run.answer(fetch, user: "bob", "pw")
        #expect(run.question(fetch)?.error == .credentialOfWrongType)
        #expect(run.requests[fetch]?.count == 1)
    }

    @Test("Rules 17 and C8: an exception lasts for the session or permanently, as answered")
    func anExceptionLastsForTheSessionOrPermanentlyAsAnswered() throws {
        for persistence in [Persistence.forSession, .permanent] {
            var run = try remembering(persistence)
            let isPermanent = persistence == .permanent
            #expect(run.kept.map(\.count) == (isPermanent ? [1] : []))
            let later = try run.fetch("https://h/b/", client: 2)
            #expect(run.last(later)?.trustedKey == 1)
            run.respond(later, 200)
            #expect(run.kept.count == (isPermanent ? 1 : 0))
            _ = run.table.clearSession()
            #expect(try run.first("https://h/")?.trustedKey == (isPermanent ? 1 : nil))
        }
    }

    @Test("Rules 24 and G4: an exception that was made for one program serves no other that needs consent")
    func anExceptionForOneProgramServesNoOtherThatNeedsConsent() throws {
        let file = Subject.File(inode: 1, changed: 1)
        let subjects = ["editor", "mailer"].map { Subject(.exe, "/usr/bin/\($0)", file: file, isSystemFile: true) }
        for (persistence, byAgent) in [(Persistence.forSession, false), (.permanent, false), (.permanent, true)] {
            var run = TableRun(sharing: .ask)
            let subscription = byAgent ? nil : pinning
            let fetch = try run.fetch("https://h/a/", subscription: subscription, subject: subjects[0])
            run.fail(fetch, .untrusted(1))
            #expect(run.question(fetch)?.persistenceAllowed.contains(.permanent) == byAgent)
            run.answer(fetch, trust(1, persistence))
            run.respond(fetch, 200)
            let own = try run.fetch("https://h/", client: 3, subscription: pinning, subject: subjects[0])
            #expect(run.last(own)?.trustedKey == 1)
            for subject in [subjects[1], .unknown] {
                let other = try run.fetch("https://h/", client: 2, subscription: pinning, subject: subject)
                #expect(run.last(other)?.trustedKey == (byAgent ? 1 : nil), "\(subject)")
            }
        }
    }

    @Test("Rule 17: an exception is not remembered before a response")
    func anExceptionIsNotRememberedBeforeAResponse() throws {
        var run = TableRun()
        let fetch = try distrusted(&run)
        run.answer(fetch, trust(1, .permanent))
        run.fail(fetch)
        #expect(run.kept.isEmpty)
        #expect(try run.first("https://h/")?.trust == .verify)
    }

    @Test func aChangedKeyIsAskedAboutAndMarked() throws {
        var run = try remembering(.forSession)
        let fetch = try distrusted(&run, 2)
        #expect(run.question(fetch)?.connection == .serverTrust(facts(2, [.selfSigned, .changed])))
        run.answer(fetch, .proceed)
        #expect(run.failures[fetch]?.kind == .serverNotTrusted)
        #expect(try run.first("https://h/")?.trustedKey == 1)
    }

    @Test func anExceptionEndsWhenTheServerVerifies() throws {
        var run = try remembering(.permanent)
        let fetch = try run.fetch("https://h/")
        run.fail(fetch, .untrusted(2, []))
        #expect(run.last(fetch)?.trust == .verify)
        run.respond(fetch, 200)
        #expect(run.kept.last?.isEmpty == true)
        #expect(try run.first("https://h/")?.trust == .verify)
    }

    @Test("Rule 20: the identical certificate is one question")
    func theIdenticalCertificateIsOneQuestion() throws {
        var run = TableRun()
        let (one, same) = (try distrusted(&run), try distrusted(&run, client: 2))
        let other = try distrusted(&run, 2, client: 3)
        #expect(run.asking == [one, other])
        #expect(run.isWaiting(same))
        run.answer(one, trust(1, .forSession))
        #expect(run.last(same)?.trustedKey == 1)
        #expect(run.identity(one) != run.identity(same))
        #expect(run.asking == [other])
    }

    @Test("Rule 20: continue counts for all fetches, reject for those of the same client")
    func continueServesAllFetchesRejectThoseOfTheSameClient() throws {
        for answer in [ChallengeAnswer.proceed, .reject] {
            var run = TableRun()
            let ids = try [1, 1, 2].map { try distrusted(&run, client: $0) }
            run.answer(ids[0], answer)
            #expect(Set(run.failures.keys) == Set(answer == .proceed ? ids[...] : ids[..<2]))
            #expect(run.asking == (answer == .proceed ? [] : [ids[2]]))
        }
    }

    @Test("Rules 24 and C9: no stored credential is sent over an exception")
    func noStoredCredentialFlowsOverAnException() throws {
        var run = TableRun()
        let stored = try run.fetch("https://h/a/")
        run.challenge(stored)
        run.answer(stored, user: "bob", "pw")
        run.respond(stored, 200)
        let fetch = try run.fetch("https://h/a/", subscription: trustOnly)
        run.fail(fetch, .untrusted(1))
        #expect(run.last(fetch)?.authorization != nil)
        run.answer(fetch, trust(1))
        #expect(run.last(fetch)?.authorization == nil)
        run.challenge(fetch)
        #expect(run.question(fetch)?.proposedCredential == nil)
        #expect(run.question(fetch)?.persistenceAllowed == [Persistence.none])
        run.answer(fetch, user: "bob", "pw", .permanent)
        run.respond(fetch, 200)
        #expect(run.table.sessionCount == 1)
    }

    /// Another fetch creates the exception while the credential is already in flight.
    @Test("Rule 24: no stored credential is sent over an exception made meanwhile by another fetch")
    func noStoredCredentialFlowsOverAnExceptionThatAnotherFetchHasMadeMeanwhile() throws {
        var run = TableRun()
        let stored = try run.fetch("https://h/a/")
        run.challenge(stored)
        run.answer(stored, user: "bob", "pw")
        run.respond(stored, 200)
        let late = try run.fetch("https://h/a/")
        #expect(run.last(late)?.authorization != nil)
        let fetch = try distrusted(&run)
        run.answer(fetch, trust(1, .forSession))
        run.respond(fetch, 200)
        run.fail(late, .untrusted(1))
        #expect(run.last(late)?.trustedKey == 1)
        #expect(run.last(late)?.authorization == nil)
    }

    @Test("Rules 22 and 24: a dropped credential leaves no fetch waiting for its acceptance")
    func aDroppedCredentialLeavesNoFetchWaitingForItsVerdict() throws {
        var run = TableRun(isKeyringEnabled: true)
        var attributes = exact("bob", port: 443)
        attributes["protocol"] = "https"
        let fetch = try run.fetch("https://h/a/", subscription: pinning) { $0.interaction = .agent }
        run.challenge(fetch)
        run.found(fetch, [item("1", attributes, "pw")])
        #expect(run.last(fetch)?.authorization?.revealed == basic("bob", "pw"))
        let own = try run.fetch("https://h/a/", client: 2) { $0.credential = login("bob", "pw") }
        run.challenge(own)
        #expect(run.isWaiting(own))
        run.fail(fetch, .untrusted(1))
        run.answer(fetch, trust(1))
        #expect(run.last(fetch)?.authorization == nil)
        #expect(run.last(own)?.authorization?.revealed == basic("bob", "pw"))
    }

    @Test("Rule 2: an answer to a login challenge survives the server trust challenge of the next connection")
    func anAnswerToALoginChallengeSurvivesTheServerTrustChallenge() throws {
        var run = TableRun()
        let fetch = try run.fetch("https://h/", subscription: pinning)
        run.challenge(fetch)
        run.answer(fetch, user: "bob", "pw")
        run.fail(fetch, .untrusted(1))
        run.answer(fetch, trust(1))
        #expect(run.last(fetch)?.authorization?.revealed == basic("bob", "pw"))
        run.respond(fetch, 200)
        #expect(run.table.sessionCount == 0)
    }

    @Test func aLockTakesBackAPendingCredential() throws {
        var run = TableRun(proxy: wayOut)
        let stored = try run.fetch("https://h/")
        run.challenge(stored)
        run.answer(stored, user: "bob", "pw")
        run.respond(stored, 200)
        let fetch = try run.fetch("https://h/")
        run.challengeFromProxy(fetch)
        _ = run.table.lock()
        run.answer(fetch, user: "out", "pw")
        #expect(run.last(fetch)?.proxyLogin == basic("out", "pw"))
        #expect(run.last(fetch)?.authorization == nil)
    }

    @Test func alwaysAsksAndKeepsTheStoredLogin() throws {
        var run = TableRun()
        let stored = try run.fetch("https://h/a/")
        run.challenge(stored)
        run.answer(stored, user: "bob", "pw")
        run.respond(stored, 200)
        let fetch = try run.fetch("https://h/a/", subscription: trustOnly) { $0.tls.trust = .always }
        #expect(run.last(fetch)?.trust == .ask)
        run.fail(fetch, .untrusted(1, []))
        run.answer(fetch, .proceed)
        #expect(run.last(fetch)?.trustedKey == 1)
        #expect(run.last(fetch)?.authorization?.revealed == basic("bob", "pw"))
    }

    @Test func aGoodCertificateThatIsRejectedEndsTheFetch() throws {
        for respondent in [Subscription?.none, pinning] {
            var run = TableRun()
            let fetch = try run.fetch("https://h/a/", subscription: respondent) { $0.tls.trust = .always }
            run.fail(fetch, .untrusted(1, []))
            #expect(run.question(fetch) != nil)
            run.answer(fetch, .reject)
            #expect(run.failures[fetch]?.kind == .serverNotTrusted)
            #expect(run.requests[fetch]?.count == 1)
        }
    }

    @Test func theOtherAnswersLeaveAGoodCertificateAtItsVerification() throws {
        for answer in [ChallengeAnswer.proceed, .useDefault] {
            var run = TableRun()
            let fetch = try run.fetch("https://h/a/", subscription: nil) { $0.tls.trust = .always }
            run.fail(fetch, .untrusted(1, []))
            run.answer(fetch, answer)
            #expect(run.last(fetch)?.trustedKey == 1)
        }
    }

    @Test func aPinIsTheOnlyKeyThatIsGoodEnough() throws {
        var run = TableRun()
        let pin = TrustCredential(spkiSha256: Hexadecimal.text(hash(1)))
        let fetch = try run.fetch("https://h/", subscription: pinning) { $0.tls.pin = pin }
        #expect(run.last(fetch)?.trustedKey == 1)
        run.fail(fetch, .untrusted(2, []))
        #expect(run.failures[fetch]?.kind == .serverNotTrusted)
        #expect(run.challenges.isEmpty)
    }

    @Test func aDecisionOfTheFetchHoldsForItsOtherRequestsToTheServer() throws {
        var run = TableRun()
        let fetch = try distrusted(&run)
        run.answer(fetch, trust(1))
        let identity = run.identity(fetch)
        run.respond(fetch, 302, ("Location", "/b"))
        #expect(run.last(fetch)?.trustedKey == 1)
        #expect(run.identity(fetch) == identity)
        run.respond(fetch, 302, ("Location", "https://i/"))
        #expect(run.last(fetch)?.trust == .verify)
    }

    @Test(arguments: ["response", "failure", "abort", "redirect", "another key", "timeout"])
    func everyEndOfTheFetchClosesItsConnections(end: String) throws {
        var run = TableRun()
        let fetch = try distrusted(&run)
        run.answer(fetch, trust(1))
        let identity = try #require(run.identity(fetch))
        switch end {
        case "response": run.respond(fetch, 200)
        case "failure": run.fail(fetch)
        case "abort": run.abort(fetch)
        case "redirect":
            run.respond(fetch, 302, ("Location", "https://i/"))
            run.respond(fetch, 200)
        case "another key":
            run.fail(fetch, .untrusted(2))
            run.answer(fetch, .cancel)
        default:
            run.now += Limits.defaultFetchTimeout
            run.respond(fetch, 302, ("Location", "https://i/"))
        }
        #expect(run.results.count + run.failures.count == 1)
        #expect(run.closed.contains(identity))
        #expect(run.table.context.identities.entries.count <= 1)
    }
}
