import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Servers that ask for a certificate: semantics rules 3, 9, 11 to 13, 17, 20; security rules C1 to C3 and C9.
@Suite struct ClientCertificateFetchTests {
    private func required(_ run: inout TableRun, client: Int = 1) throws -> FetchID {
        let fetch = try run.fetch("https://h/a/", client: client, subscription: pinning)
        run.fail(fetch, .certificate(.clientCertificateRequired))
        return fetch
    }

    private func show(_ name: String, _ persistence: Persistence = .none) -> ChallengeAnswer {
        .credential(.certificate(certificate(name, persistence)))
    }

    @Test func c1TheChallengeNamesTheIssuers() throws {
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

    @Test func rule3WhoDoesNotSayIsNotAskedAndGoesWithout() throws {
        var run = TableRun()
        let fetch = try run.fetch("https://h/")
        #expect(run.last(fetch)?.refusesCertificateRequest == false)
        #expect(run.identity(fetch) == ConnectionIdentity.none)
    }

    @Test func rule11And13AndC2EveryOtherAnswerGoesOnWithout() throws {
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

    @Test func rule12CancelEndsThoseOfTheSameClient() throws {
        var run = TableRun()
        let ids = try [1, 1, 2].map { try required(&run, client: $0) }
        run.answer(ids[0], .cancel)
        #expect(Set(run.failures.keys) == Set(ids[..<2]))
        #expect(run.asking == [ids[2]])
    }

    @Test func rule20ContinueServesAllAndRejectThoseOfTheSameClient() throws {
        for answer in [ChallengeAnswer.proceed, .reject] {
            var run = TableRun()
            let ids = try [1, 1, 2].map { try required(&run, client: $0) }
            run.answer(ids[0], answer)
            #expect(run.transferring == (answer == .proceed ? ids : Array(ids[..<2])))
            #expect(run.challenges.count == (answer == .proceed ? 1 : 2))
        }
    }

    @Test func rule20OneCertificateForAllOnceTheServerHasTakenIt() throws {
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

    @Test func rule9ARefusedCertificateIsNotShownAgain() throws {
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
    func whatIsOfNoUseIsAskedAboutWithTheReason(cause: TransferFailure.Cause, problem: Challenge.AnswerProblem) throws {
        var run = TableRun()
        let own = certificate("own")
        let fetch = try run.fetch("https://h/", subscription: pinning) { $0.tls.certificate = own }
        run.fail(fetch, .certificate(.clientCertificateRequired))
        #expect(run.last(fetch)?.shownCertificate == "/own.pem")
        #expect(run.challenges.isEmpty)
        let identity = try #require(run.identity(fetch))
        // What is read here fails without a word of the server.
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

    @Test func rule17ForTheSessionOnceTheServerHasTakenIt() throws {
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

    /// It is used without a question, and its client can be asked when it is of no use.
    private var consulted: Subscription { Subscription(delivery: .request, asksCanAuthenticate: true) }

    @Test func rule5InTheModeEverythingARememberedCertificateIsProposed() throws {
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

    @Test func rule17ARememberedCertificateGoesWhenItIsRefused() throws {
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

    @Test func x2TheSessionRemembersTheContent() throws {
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
        // Under the same name.
        run.answer(later, show("a", .forSession))
        #expect(run.last(later)?.shownCertificate == "/a.pem")
        #expect(run.last(later)?.clientCertificate?.expectedContent == nil)
        run.receive(later, 200, []) { $0.clientCertificate = CertificateContent(sha256: [2]) }
        let expected = try run.first("https://h/")?.clientCertificate?.expectedContent
        #expect(expected == CertificateContent(sha256: [2]))
    }

    @Test func rule23TheFetchsOwnIsForItsOriginOnly() throws {
        var run = TableRun()
        let own = certificate("own")
        let fetch = try run.fetch("https://h/") { $0.tls.certificate = own }
        run.fail(fetch, .certificate(.clientCertificateRequired))
        run.respond(fetch, 302, ("Location", "https://i/"))
        #expect(run.last(fetch)?.clientCertificate == nil)
        #expect(run.last(fetch)?.refusesCertificateRequest == false)
    }

    @Test func rule23FromACertificateToPlainHTTPIsRefused() throws {
        var run = TableRun()
        let fetch = try required(&run)
        run.answer(fetch, show("a"))
        run.respond(fetch, 302, ("Location", "http://h/"))
        #expect(run.failures[fetch]?.kind == .insecureRedirect)
    }

    @Test func rule24AndC9NoRememberedCertificateOverAnException() throws {
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

    @Test func whatThePersonTypedSurvivesTheQuestionForACertificate() throws {
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
