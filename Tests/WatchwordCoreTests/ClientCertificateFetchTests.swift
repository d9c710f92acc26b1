import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Servers that ask for a certificate: SEMANTICS rules 3, 9, 11 to 13, 17, 20; SECURITY-RULES C1 to C3 and C9.
@Suite struct ClientCertificateFetchTests {
    private func required(_ run: inout TableRun, client: Int = 1) throws -> FetchID {
        let fetch = try run.fetch("https://h/a/", client: client, subscription: pinning)
        run.fail(fetch, .certificate(.clientCertificateRequired))
        return fetch
    }

    private func show(_ name: String, _ persistence: Persistence = .none) -> ChallengeAnswer {
        .credential(.certificate(certificate(name, persistence)))
    }

    @Test("Rule C1: the challenge contains the accepted issuers")
    func theChallengeNamesTheIssuers() throws {
        var run = TableRun()
        let fetch = try required(&run)
        #expect(run.last(fetch)?.refusesCertificateRequest == true)
        #expect(run.question(fetch)?.connection == .clientCertificate(distinguishedNames: ["CN=CA"]))
        #expect(run.question(fetch)?.persistenceAllowed == [.none, .forSession])
        run.answer(fetch, show("a"))
        #expect(run.last(fetch)?.shownCertificate == "/a.pem")
        #expect(run.last(fetch)?.refusesCertificateRequest == false)
        run.respond(fetch, 200)
        #expect(try run.first("https://h/")?.clientCertificate == nil)
    }

    @Test("Rule 3: a client that does not declare clientCertificate is not asked, and no certificate is sent")
    func aClientThatDoesNotDeclareClientCertificateIsNotAskedAndNoCertificateIsSent() throws {
        var run = TableRun()
        let fetch = try run.fetch("https://h/")
        #expect(run.last(fetch)?.refusesCertificateRequest == false)
        #expect(run.identity(fetch) == ConnectionIdentity.none)
    }

    @Test("Rules 11, 13, 14 and C2: continue, default and reject send no certificate")
    func everyOtherAnswerContinuesWithoutACertificate() throws {
        for answer in [ChallengeAnswer.proceed, .useDefault, .reject] {
            var run = TableRun()
            let fetch = try required(&run)
            run.answer(fetch, answer)
            if answer == .useDefault { run.answer(fetch, answer) }
            #expect(run.last(fetch)?.clientCertificate == nil)
            #expect(run.last(fetch)?.refusesCertificateRequest == false)
            run.respond(fetch, 400)
            #expect(run.results[fetch]?.response.status == 400)
        }
    }

    @Test("Rules 12 and 20: cancel ends the fetches of the same client")
    func cancelEndsTheFetchesOfTheSameClient() throws {
        var run = TableRun()
        let ids = try [1, 1, 2].map { try required(&run, client: $0) }
        run.answer(ids[0], .cancel)
        #expect(Set(run.failures.keys) == Set(ids[..<2]))
        #expect(run.asking == [ids[2]])
    }

    @Test("Rule 20: continue counts for all fetches, reject for those of the same client")
    func continueServesAllFetchesRejectThoseOfTheSameClient() throws {
        for answer in [ChallengeAnswer.proceed, .reject] {
            var run = TableRun()
            let ids = try [1, 1, 2].map { try required(&run, client: $0) }
            run.answer(ids[0], answer)
            #expect(run.transferring == (answer == .proceed ? ids : Array(ids[..<2])))
            #expect(run.challenges.count == (answer == .proceed ? 1 : 2))
        }
    }

    @Test("Rule 20: one certificate serves all once the server has accepted it")
    func oneCertificateServesAllOnceTheServerHasAcceptedIt() throws {
        var run = TableRun()
        let ids = try (1...3).map { try required(&run, client: $0) }
        #expect(run.asking == [ids[0]])
        run.answer(ids[0], show("a"))
        #expect(run.isWaiting(ids[1]))
        run.fail(ids[0], .certificate(.clientCertificateRefused))
        #expect(run.asking == [ids[0]])
        run.answer(ids[0], show("b", .forSession))
        run.respond(ids[0], 200)
        #expect(run.last(ids[1])?.shownCertificate == "/b.pem")
        #expect(run.last(ids[2])?.shownCertificate == "/b.pem")
        #expect(run.challenges.count == 2)
    }

    @Test("Rule 9: a refused certificate is not sent again")
    func aRefusedCertificateIsNotSentAgain() throws {
        var run = TableRun()
        let fetch = try required(&run)
        run.answer(fetch, show("a"))
        run.fail(fetch, .certificate(.clientCertificateRefused))
        #expect(run.question(fetch)?.error == .certificateRefused)
        #expect(run.question(fetch)?.previousFailureCount == 1)
        run.answer(fetch, show("a", .forSession))
        #expect(run.question(fetch)?.error == .credentialAlreadyRefused)
        #expect(run.question(fetch)?.previousFailureCount == 2)
        run.answer(fetch, .credential(.proposed))
        #expect(run.question(fetch)?.error == .nothingProposed)
        run.answer(fetch, trust(1))
        #expect(run.question(fetch)?.error == .credentialOfWrongType)
        run.answer(fetch, .proceed)
        #expect(run.last(fetch)?.clientCertificate == nil)
    }

    @Test(arguments: [
        (TransferFailure.Cause.clientCertificateUnreadable, Challenge.AnswerProblem.certificateNotUsable),
        (.clientKeyMismatch, .certificateNotUsable), (.clientKeyPassphraseWrong, .passphraseWrong),
        (.clientCertificateRefused, .certificateRefused),
    ])
    func anUnusableCertificateRaisesAChallengeWithTheReason(
        cause: TransferFailure.Cause, problem: Challenge.AnswerProblem
    ) throws {
        var run = TableRun()
        let own = certificate("own")
        let fetch = try run.fetch("https://h/", subscription: pinning) { $0.tls.certificate = own }
        run.fail(fetch, .certificate(.clientCertificateRequired))
        #expect(run.last(fetch)?.shownCertificate == "/own.pem")
        #expect(run.challenges.isEmpty)
        let identity = try #require(run.identity(fetch))
        // The server does not take part in this failure: the files are read before anything is sent.
        run.fail(fetch, TransferFailure(.tlsFailed, "detail", cause: cause))
        #expect(run.question(fetch)?.error == problem)
        #expect(run.question(fetch)?.connection == .clientCertificate(distinguishedNames: ["CN=CA"]))
        #expect(run.closed.contains(identity))
        let silent = try run.fetch("https://h/") {
            $0.tls.certificate = own
            $0.interaction = .none
        }
        run.fail(silent, .certificate(.clientCertificateRequired))
        run.fail(silent, .certificate(cause))
        #expect(run.failures[silent]?.kind == .clientCertificateRejected)
    }

    @Test("A fetch whose own certificate cannot be used fails if no respondent can be asked for another one")
    func anUnusableCertificateIsNotReplacedByNone() throws {
        for isAsked in [true, false] {
            var run = TableRun()
            let fetch = try run.fetch("https://h/", subscription: pinning) {
                $0.tls.certificate = certificate("own")
            }
            run.fail(fetch, .certificate(.clientCertificateRequired))
            run.fail(fetch, .certificate(.clientCertificateUnreadable))
            #expect(run.question(fetch)?.error == .certificateNotUsable)
            if isAsked { run.answer(fetch, .useDefault) } else { run.notAsked(fetch, .stopped) }
            run.notAsked(fetch, .noAgent)
            #expect(run.failures[fetch]?.kind == (isAsked ? nil : .clientCertificateRejected))
        }
    }

    @Test("Rule 17: a certificate is remembered for the session once the server has accepted it")
    func aCertificateIsRememberedForTheSessionOnceTheServerHasAcceptedIt() throws {
        for status in [200, 401, 400] {
            var run = TableRun()
            let fetch = try required(&run)
            run.answer(fetch, show("a", .forSession))
            run.respond(fetch, status)
            let later = try run.fetch("https://h/b/", client: 2)
            #expect(run.last(later)?.shownCertificate == (status == 400 ? nil : "/a.pem"))
            #expect(try run.first("https://i/")?.clientCertificate == nil)
            let closed = try run.fetch("https://h/") { $0.useStorage = false }
            #expect(run.last(closed)?.clientCertificate == nil)
        }
    }

    /// The certificate is used without a question; if it is unusable, the client is asked.
    private var consulted: Subscription { Subscription(delivery: .request, asksCanAuthenticate: true) }

    @Test("Rule 5: in the mode everything a remembered certificate is proposed")
    func inTheModeEverythingARememberedCertificateIsProposed() throws {
        var run = TableRun()
        let fetch = try required(&run)
        run.answer(fetch, show("a", .forSession))
        run.respond(fetch, 200)
        let later = try run.fetch("https://h/", subscription: pinning)
        #expect(run.last(later)?.clientCertificate == nil)
        run.fail(later, .certificate(.clientCertificateRequired))
        let proposed = ProposedCredential(user: nil, hasPassword: true, source: .session)
        #expect(run.question(later)?.proposedCredential == proposed)
        run.answer(later, .credential(.proposed))
        #expect(run.last(later)?.shownCertificate == "/a.pem")
    }

    @Test("Rule 17: a remembered certificate is forgotten when it is refused")
    func aRememberedCertificateIsForgottenWhenItIsRefused() throws {
        var run = TableRun()
        let fetch = try required(&run)
        run.answer(fetch, show("a", .forSession))
        run.respond(fetch, 200)
        let later = try run.fetch("https://h/", subscription: consulted)
        #expect(run.last(later)?.shownCertificate == "/a.pem")
        run.fail(later, .certificate(.clientCertificateRefused))
        run.consulted(later, true)
        #expect(run.asking == [later])
        #expect(try run.first("https://h/")?.clientCertificate == nil)
    }

    @Test("Rule X2: the session remembers a certificate by its content")
    func theSessionRemembersACertificateByItsContent() throws {
        var run = TableRun()
        let fetch = try required(&run)
        run.answer(fetch, show("a", .forSession))
        #expect(run.last(fetch)?.clientCertificate?.expectedContent == nil)
        let content = CertificateContent(sha256: [1])
        run.receive(fetch, 200, []) { $0.clientCertificate = content }
        let later = try run.fetch("https://h/", subscription: consulted)
        #expect(run.last(later)?.clientCertificate?.expectedContent == content)
        run.fail(later, TransferFailure(.tlsFailed, "detail", cause: .clientCertificateChanged))
        run.consulted(later, true)
        #expect(run.question(later)?.error == .certificateChanged && run.question(later)?.previousFailureCount == 0)
        #expect(try run.first("https://h/")?.clientCertificate == nil)
        // The answer names the same path as the remembered certificate.
        run.answer(later, show("a", .forSession))
        #expect(run.last(later)?.shownCertificate == "/a.pem")
        #expect(run.last(later)?.clientCertificate?.expectedContent == nil)
        run.receive(later, 200, []) { $0.clientCertificate = CertificateContent(sha256: [2]) }
        let expected = try run.first("https://h/")?.clientCertificate?.expectedContent
        #expect(expected == CertificateContent(sha256: [2]))
    }

    @Test("Rule 23: the fetch's own certificate is for its origin only")
    func theFetchsOwnCertificateIsForItsOriginOnly() throws {
        var run = TableRun()
        let own = certificate("own")
        let fetch = try run.fetch("https://h/") { $0.tls.certificate = own }
        run.fail(fetch, .certificate(.clientCertificateRequired))
        run.respond(fetch, 302, ("Location", "https://i/"))
        #expect(run.last(fetch)?.clientCertificate == nil)
        #expect(run.last(fetch)?.refusesCertificateRequest == false)
    }

    @Test("Rule 23: a redirect to plain http after a client certificate is refused")
    func aRedirectToPlainHttpAfterAClientCertificateIsRefused() throws {
        var run = TableRun()
        let fetch = try required(&run)
        run.answer(fetch, show("a"))
        run.respond(fetch, 302, ("Location", "http://h/"))
        #expect(run.failures[fetch]?.kind == .insecureRedirect)
    }

    @Test("Rules 24 and C9: no remembered certificate is sent over an exception")
    func noRememberedCertificateIsSentOverAnException() throws {
        var run = TableRun()
        let fetch = try required(&run)
        run.answer(fetch, show("a", .forSession))
        run.respond(fetch, 200)
        let later = try run.fetch("https://h/", subscription: consulted)
        #expect(run.last(later)?.shownCertificate == "/a.pem")
        run.fail(later, .untrusted(1))
        run.consulted(later, true)
        run.answer(later, trust(1))
        #expect(run.last(later)?.clientCertificate == nil)
        run.fail(later, .certificate(.clientCertificateRequired))
        run.consulted(later, true)
        #expect(run.question(later)?.persistenceAllowed == [Persistence.none])
        run.answer(later, show("b", .forSession))
        #expect(run.last(later)?.shownCertificate == "/b.pem")
        run.respond(later, 200)
        #expect(try run.first("https://h/")?.shownCertificate == "/a.pem")
    }

    @Test("Rule 2: an answer to a login challenge survives the certificate challenge of the next connection")
    func anAnswerToALoginChallengeSurvivesTheCertificateChallenge() throws {
        var run = TableRun()
        let fetch = try run.fetch("https://h/", subscription: pinning)
        run.challenge(fetch)
        run.answer(fetch, user: "bob", "pw")
        run.fail(fetch, .certificate(.clientCertificateRequired))
        run.answer(fetch, show("a"))
        #expect(run.last(fetch)?.authorization?.revealed == basic("bob", "pw"))
        run.respond(fetch, 302, ("Location", "/b"))
        #expect(run.last(fetch)?.shownCertificate == "/a.pem")
        #expect(run.challenges.count == 2)
    }
}
