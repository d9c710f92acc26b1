import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The use of stored credentials by programs that need consent (SECURITY-RULES G1 to G10).
@Suite struct ConsentTests {
    private static let file = Subject.File(inode: 1, changed: 1)
    private let editor = Subject(.exe, "/usr/bin/editor", file: file, isSystemFile: true)
    private let mailer = Subject(.exe, "/usr/bin/mailer", file: file, isSystemFile: true)
    private let script = Subject(.exe, "/usr/bin/python3", file: file, isInterpreter: true)
    private let maps = Subject(.flatpak, "org.gnome.Maps", isSandboxed: true)

    /// Returns a run in which bob has logged in with the editor.
    private func afterLogin(_ sharing: FetchTable.Sharing = .ask, by subject: Subject? = nil) throws -> TableRun {
        var run = TableRun(sharing: sharing)
        let fetch = try run.fetch(subject: subject ?? editor)
        run.challenge(fetch)
        run.answer(fetch, user: "bob", "pw")
        run.respond(fetch, 200)
        return run
    }

    /// Returns the `Authorization` field that the fetch sends in its answer to the challenge.
    private func authorization(_ run: TableRun, _ id: FetchID) -> String? { run.request(id)?.authorization?.revealed }

    @Test("Rule G8: a program needs no consent for a credential that was typed for it")
    func aProgramNeedsNoConsentForACredentialThatWasTypedForIt() throws {
        var run = try afterLogin()
        let again = try run.fetch(client: 2, subject: editor)
        #expect(authorization(run, again) == basic("bob", "pw"))
    }

    @Test(
        "Rule G4: another program uses a session credential only with consent",
        arguments: [Consent.once, .session, .always])
    func anotherProgramUsesItWithConsent(consent: Consent) throws {
        var run = try afterLogin()
        let fetch = try run.fetch(client: 2, subject: mailer)
        #expect(authorization(run, fetch) == nil)
        run.challenge(fetch)
        let asked = try #require(run.confirmation(fetch))
        #expect(asked.user == "bob" && asked.source == .session && asked.subject == mailer)
        run.confirm(fetch, consent)
        #expect(authorization(run, fetch) == basic("bob", "pw"))
        run.respond(fetch, 200)
        let next = try run.fetch(client: 3, subject: mailer)
        #expect((authorization(run, next) != nil) == (consent != .once))
        #expect(run.keptConsents.last?.map(\.subject) == (consent == .always ? [mailer] : nil))
    }

    @Test("Rule G6: after a denial no agent is asked for a password, neither now nor by the next fetch")
    func afterADenialNoAgentIsAsked() throws {
        var run = try afterLogin()
        for number in 2...3 {
            let fetch = try run.fetch(client: number, subscription: nil, subject: mailer)
            run.challenge(fetch)
            #expect((run.confirmation(fetch) != nil) == (number == 2))
            if number == 2 { run.confirm(fetch, .no) }
            #expect(run.results[fetch]?.response.status == 401)
            #expect(run.results[fetch]?.unanswered?.cause == .consentDenied)
        }
        let other = try run.fetch(client: 4, subscription: nil, subject: script)
        run.challenge(other)
        run.confirm(other, nil)
        #expect(run.question(other) != nil, "no person has denied it")
    }

    @Test("Rule G6: without consent the client is asked for a credential of its own", arguments: [Consent.no, nil])
    func withoutConsentTheClientIsAskedForItsOwn(consent: Consent?) throws {
        var run = try afterLogin()
        let fetch = try run.fetch(client: 2, subject: mailer)
        run.challenge(fetch)
        run.confirm(fetch, consent)
        #expect(run.question(fetch)?.proposedCredential == nil)
        run.answer(fetch, .proceed)
        #expect(run.results[fetch]?.response.status == 401)
        // After a refusal, or shortly after a question, the person is not asked again.
        let next = try run.fetch(client: 2, subject: mailer)
        run.challenge(next)
        #expect(run.confirmation(next) == nil && run.question(next) != nil)
        run.abort(next)
        run.now += Limits.consentCooldown
        let later = try run.fetch(client: 2, subject: mailer)
        run.challenge(later)
        #expect((run.confirmation(later) == nil) == (consent == .no))
        #expect(run.sent == [basic("bob", "pw")])
    }

    @Test("Rule I7: a grant to a script is not one to another script of the interpreter")
    func aGrantToAScriptIsForItAlone() throws {
        func python(_ path: ExactText, changed: Int64 = 1) -> Subject {
            let file = Subject.File(inode: 2, changed: changed)
            return Subject(
                .exe, "/usr/bin/python3", file: Self.file, isSystemFile: true, isInterpreter: true,
                script: Subject.Script(path: path, file: file, isSystemFile: true))
        }
        var run = try afterLogin()
        let fetch = try run.fetch(client: 2, subject: python("/usr/bin/report"))
        run.challenge(fetch)
        run.confirm(fetch, .always)
        run.respond(fetch, 200)
        let others = [python("/usr/bin/report", changed: 2), python("/usr/bin/other"), script]
        for (index, other) in ([python("/usr/bin/report")] + others).enumerated() {
            let next = try run.fetch(client: 3 + index, subject: other)
            #expect((authorization(run, next) != nil) == (index == 0))
        }
    }

    @Test("Rule G1: an unidentified program is asked about each time")
    func anUnidentifiedPeerNeedsConsentEachTime() throws {
        var run = try afterLogin()
        let fetch = try run.fetch(client: 2, subject: script)
        run.challenge(fetch)
        // An answer that exceeds the offer counts as the highest offered.
        run.confirm(fetch, .always)
        run.respond(fetch, 200)
        let next = try run.fetch(client: 3, subject: script)
        run.challenge(next)
        #expect(run.confirmation(next) != nil)
        run.confirm(next, .no)
        #expect(run.question(next) != nil)
        run.abort(next)
        // The refusal also applies to another connection of the program.
        let other = try run.fetch(client: 4, subject: script)
        run.challenge(other)
        #expect(run.confirmation(other) == nil && run.question(other) != nil)
    }

    @Test("Rule G2: a grant is for one user")
    func aGrantIsForOneUserAndOneSpace() throws {
        var run = try afterLogin()
        let fetch = try run.fetch(client: 2, subject: mailer)
        run.challenge(fetch)
        run.confirm(fetch, .session)
        run.respond(fetch, 200)
        let carol = try run.fetch("http://carol@h/a/page", subject: editor)
        run.challenge(carol)
        run.answer(carol, user: "carol", "pw2")
        run.respond(carol, 200)
        let other = try run.fetch("http://carol@h/a/page", client: 2, subject: mailer)
        run.challenge(other)
        #expect(run.confirmation(other)?.user == "carol")
        run.abort(other)
        let realm = try run.fetch("http://h/b/page", client: 2, subject: mailer)
        run.challenge(realm, "Basic realm=\"other\"")
        #expect(run.confirmation(realm) == nil && run.question(realm) != nil)
    }

    @Test("Rule G2: a grant is for one protection space")
    func aGrantIsForOneProtectionSpace() throws {
        var run = try afterLogin()
        let fetch = try run.fetch(client: 2, subject: mailer)
        run.challenge(fetch)
        run.confirm(fetch, .session)
        run.respond(fetch, 200)
        let stored = try run.fetch("http://h/b/page", subject: editor)
        run.challenge(stored, "Basic realm=\"other\"")
        run.answer(stored, user: "bob", "pw2")
        run.respond(stored, 200)
        let other = try run.fetch("http://h/b/page", client: 2, subject: mailer)
        run.challenge(other, "Basic realm=\"other\"")
        #expect(run.confirmation(other)?.user == "bob")
    }

    @Test("Rule G7: another file of the same name has no grant")
    func anotherFileOfThatNameHasNoGrant() throws {
        var run = try afterLogin()
        let replaced = Subject(.exe, "/usr/bin/editor", file: Subject.File(inode: 9, changed: 1), isSystemFile: true)
        let fetch = try run.fetch(client: 2, subject: replaced)
        #expect(authorization(run, fetch) == nil)
        run.challenge(fetch)
        #expect(run.confirmation(fetch) != nil)
    }

    @Test("Rule G7: after a revocation or a lock consent is asked again")
    func consentIsAskedAgainAfterARevocationOrALock() throws {
        for end in 0..<3 {
            var run = try afterLogin()
            let fetch = try run.fetch(client: 2, subject: mailer)
            run.challenge(fetch)
            run.confirm(fetch, .session)
            run.respond(fetch, 200)
            let number = try #require(run.table.grants.last?.id)
            switch end {
            case 0: run.take(run.table.revokeGrants(number: number, subject: nil).orders)
            case 1: run.take(run.table.revokeGrants(number: nil, subject: "exe:/usr/bin/mailer").orders)
            default:
                run.take(run.table.lock())
                run.table.unlock()
                #expect(run.table.grants.isEmpty)
                let (_, orders) = run.table.give(
                    login("bob", "pw"), for: SpacePattern(scheme: "http", host: "h", port: 80),
                    of: ClientTag(value: 1), now: run.now)
                run.take(orders)
            }
            let next = try run.fetch(client: 2, subject: mailer)
            run.challenge(next)
            #expect(run.confirmation(next) != nil, "\(end)")
        }
    }

    @Test func aCredentialWithARevokedGrantIsNotSentAgain() throws {
        var run = try afterLogin()
        let fetch = try run.fetch(client: 2, subject: mailer)
        run.challenge(fetch)
        run.confirm(fetch, .session)
        run.take(run.table.revokeGrants(number: nil, subject: nil).orders)
        run.respond(fetch, 302, ("Location", "/a/next"))
        #expect(authorization(run, fetch) == nil)
    }

    // MARK: Sandboxes

    @Test func aSandboxIsAskedAboutWithoutAnyConfiguration() throws {
        var run = try afterLogin(.user)
        let fetch = try run.fetch(client: 2, subject: maps)
        #expect(authorization(run, fetch) == nil)
        run.challenge(fetch)
        #expect(run.confirmation(fetch)?.subject == maps)
        let other = try run.fetch(client: 3, subject: mailer)
        #expect(authorization(run, other) == basic("bob", "pw"))
    }

    @Test("Rule G4: a credential of a sandboxed program is for it alone")
    func aCredentialOfASandboxedProgramIsForItAlone() throws {
        var run = try afterLogin(.user, by: maps)
        let again = try run.fetch(client: 2, subject: maps)
        #expect(authorization(run, again) == basic("bob", "pw"))
        let other = try run.fetch(client: 3, subject: mailer)
        #expect(authorization(run, other) == nil)
        run.challenge(other)
        #expect(run.question(other)?.proposedCredential == nil)
        // Users manage the credential with the others.
        #expect(run.table.sessionCredentials(of: ClientTag(value: 3), now: run.now).map(\.user) == ["bob"])
        let unknown = try run.fetch(client: 4, subject: .unknown)
        #expect(authorization(run, unknown) == nil)
    }

    @Test func aCredentialOfAnUnidentifiedPeerEndsWithItsConnection() throws {
        var run = try afterLogin(.user, by: .unknown)
        let again = try run.fetch(subject: .unknown)
        #expect(authorization(run, again) == basic("bob", "pw"))
        let other = try run.fetch(client: 2, subject: .unknown)
        #expect(authorization(run, other) == nil)
        run.table.forgetClient(ClientTag(value: 1), .unknown)
        #expect(run.table.sessionCount == 0)
    }

    @Test func aSandboxedProgramStoresNothingPermanently() throws {
        var run = TableRun(isKeyringEnabled: true)
        let fetch = try run.fetch(subject: maps)
        run.challenge(fetch)
        run.found(fetch, [])
        #expect(run.question(fetch)?.persistenceAllowed == [.none, .forSession])
        run.answer(fetch, user: "bob", "pw", .permanent)
        run.respond(fetch, 200)
        #expect(!run.effects.contains { if case .store = $0 { true } else { false } })
    }

    @Test func theKeyringIsAskedAboutToo() throws {
        var run = TableRun(isKeyringEnabled: true)
        let fetch = try run.fetch(subject: maps)
        run.challenge(fetch)
        run.found(fetch, [item("1", exact("bob"), "pw")])
        #expect(run.confirmation(fetch)?.source == .keyring)
        run.confirm(fetch, .session)
        #expect(authorization(run, fetch) == basic("bob", "pw"))
        run.respond(fetch, 200)
        // The credential is remembered for the programs that may use it, and so is the grant.
        let again = try run.fetch(client: 2, subject: maps)
        #expect(authorization(run, again) == basic("bob", "pw"))
    }

    @Test func aChallengeProposesNoCredentialThatNeedsConsent() throws {
        var run = try afterLogin(.user)
        let everything = Subscription(delivery: .request, mode: .everything)
        let fetch = try run.fetch(client: 2, subscription: everything, subject: maps)
        run.challenge(fetch)
        #expect(run.question(fetch)?.proposedCredential == nil)
        run.answer(fetch, .credential(.proposed))
        #expect(run.question(fetch)?.error == .nothingProposed)
        run.answer(fetch, .useDefault)
        #expect(run.confirmation(fetch) != nil)
    }

    @Test func withoutInteractionNoConsentIsAskedFor() throws {
        var run = try afterLogin()
        let fetch = try run.fetch(client: 2, subject: mailer) { $0.interaction = .none }
        run.challenge(fetch)
        #expect(run.results[fetch]?.response.status == 401)
    }

    @Test func oneProgramsQuestionHoldsUpNoOther() throws {
        var run = try afterLogin()
        let waiting = try run.fetch(client: 2, subject: mailer)
        run.challenge(waiting)
        let same = try run.fetch(client: 3, subject: mailer)
        run.challenge(same)
        #expect(run.confirmation(waiting) != nil && run.isWaiting(same))
        let other = try run.fetch(client: 4, subject: maps)
        run.challenge(other)
        #expect(run.confirmation(other) != nil)
        let own = try run.fetch(client: 5, subject: editor)
        #expect(authorization(run, own) == basic("bob", "pw"))
        run.confirm(waiting, .session)
        run.respond(waiting, 200)
        #expect(authorization(run, same) == basic("bob", "pw"))
    }

    @Test func withOnceEachOfThoseThatWaitIsAskedAbout() throws {
        var run = try afterLogin()
        let first = try run.fetch(client: 2, subject: mailer)
        run.challenge(first)
        let second = try run.fetch(client: 3, subject: mailer)
        run.challenge(second)
        run.confirm(first, .once)
        run.respond(first, 200)
        #expect(run.confirmation(second) != nil)
    }

    /// A consent for one use by one program does not extend to the programs that share the keyring's answer.
    @Test func eachProgramNeedsItsOwnConsentForASharedLookup() throws {
        var run = TableRun(isKeyringEnabled: true)
        let first = try run.fetch(client: 2, subject: maps)
        run.challenge(first)
        let second = try run.fetch(client: 3, subject: maps)
        run.challenge(second)
        run.found(first, [item("1", exact("bob"), "pw")])
        run.confirm(first, .once)
        run.respond(first, 200)
        #expect(authorization(run, second) == nil && run.confirmation(second) != nil)
    }

    @Test("Rule G3: an answer that exceeds the offer counts as the highest offered")
    func anAnswerThatExceedsTheOfferCountsAsTheHighestOffered() throws {
        var run = try afterLogin()
        let fetch = try run.fetch(client: 2, subject: Subject(.unit, "report.service"))
        run.challenge(fetch)
        run.confirm(fetch, .always)
        #expect(run.table.grants.map(\.consent) == [.session] && run.keptConsents.isEmpty)
    }

    // MARK: Regressions

    /// The grant is revoked while the fetch waits for the verdict on the same credential: the broker looped endlessly.
    @Test func aGrantRevokedWhileTheFetchWaitsForAVerdictCausesNoLoop() throws {
        var run = try afterLogin(.user)
        let granted = try run.fetch(client: 2, subject: maps)
        run.challenge(granted)
        run.confirm(granted, .session)
        run.respond(granted, 401, ("WWW-Authenticate", "Basic realm=\"x\""))
        run.abort(granted)
        run.take(
            run.table.give(
                login("eve", "pw"), for: SpacePattern(scheme: "http", host: "h", port: 80, realm: "new"),
                of: ClientTag(value: 1), now: run.now
            ).orders)
        let first = try run.fetch("http://h/n/1", client: 3)
        run.challenge(first, "Basic realm=\"new\"")
        let second = try run.fetch("http://h/n/2", client: 2, subject: maps) { $0.interaction = .agent }
        run.challenge(second, "Basic realm=\"new\"")
        run.confirm(second, .session)
        #expect(run.isWaiting(second))
        run.take(run.table.revokeGrants(number: nil, subject: nil).orders)
        run.challenge(first, "Basic realm=\"new\"")
        if run.confirmation(second) != nil { run.confirm(second, nil) }
        #expect(run.request(second) == nil || authorization(run, second) == nil)
    }

    @Test(arguments: [FetchTable.Sharing.user, .ask])
    func aProvidedCredentialGrantsNothingThatIsStored(sharing: FetchTable.Sharing) throws {
        var run = try afterLogin(sharing)
        let asker = sharing == .user ? maps : mailer
        let refused = try run.fetch(client: 2, subject: asker)
        run.challenge(refused)
        run.confirm(refused, .no)
        run.abort(refused)
        // A server that says "not found" has not looked at the password.
        let junk = try run.fetch("http://h/z", client: 2, subject: asker) { $0.credential = login("bob", "junk") }
        run.challenge(junk)
        run.respond(junk, 404)
        #expect(run.table.grants.map(\.consent) == [.no])
        let next = try run.fetch(client: 2, subject: asker)
        if run.request(next)?.authorization == nil { run.challenge(next) }
        #expect(authorization(run, next) != basic("bob", "pw"))
    }

    @Test func aConsentThatComesAfterALockIsForOneFetch() throws {
        var run = try afterLogin(.user)
        let fetch = try run.fetch(client: 2, subject: maps)
        run.challenge(fetch)
        run.take(run.table.lock())
        run.confirm(fetch, .always)
        #expect(run.table.grants.isEmpty && run.keptConsents.isEmpty)
        #expect(run.sent == [basic("bob", "pw")])
    }

    @Test func aSandboxRemovesNoOtherProgramsCredential() throws {
        var run = try afterLogin(.user)
        for number in 0..<300 {
            let url = "http://own\(number % 10)/\(number)"
            let fetch = try run.fetch(url, client: 2, subject: maps) { $0.preemption = .never }
            run.challenge(fetch, "Basic realm=\"\(number)\"")
            run.answer(fetch, user: "x", "y")
            run.respond(fetch, 200)
        }
        #expect(run.table.sessionCount == 1 + SessionLimits.entriesOfPart)
        let fetch = try run.fetch(client: 1, subject: editor)
        #expect(authorization(run, fetch) == basic("bob", "pw"))
    }

    @Test func questionsAboutUnidentifiedPeersAreAskedOneByOne() throws {
        var run = try afterLogin()
        let fetches = try (2..<9).map { try run.fetch(client: $0, subject: script) }
        for fetch in fetches { run.challenge(fetch) }
        #expect(fetches.filter { run.confirmation($0) != nil }.count == 1)
        let asked = try #require(fetches.first { run.confirmation($0) != nil })
        run.confirm(asked, .no)
        #expect(fetches.allSatisfy { run.confirmation($0) == nil })
    }

    @Test func aSandboxNamesNoFilesOfTheUser() throws {
        var run = TableRun()
        let fetch = try run.fetch("https://h/", subject: maps) {
            $0.tls.certificate = certificate("client", .none)
        } adapt: {
            $0.mayNameFiles = false
        }
        run.fail(fetch, .certificate(.clientCertificateRequired))
        #expect(run.failures[fetch]?.kind == .denied)
    }

    // MARK: ConsentBook

    @Test func grantsAreBounded() {
        var book = ConsentBook()
        let access = Access(mailer, client: ClientTag(value: 1), sharing: .ask)
        func space(_ port: Int) -> ProtectionSpace {
            ProtectionSpace(scheme: "http", host: "h", port: port, realm: nil, authenticationMethod: .bearer)
        }
        book.restore((1...Limits.grants - 2).map { PermanentConsent(subject: mailer, space: space($0), user: nil) })
        for port in [2001, 2002, 2003] {
            #expect(book.listing.count == min(Limits.grants - 2 + port - 2001, Limits.grants))
            _ = book.record(.session, to: ConsentBook.Use(space: space(port), user: nil), of: access, now: .zero)
        }
        #expect(book.listing.count == Limits.grants)
        #expect(book.listing.suffix(3).map(\.use.space.port) == [Limits.grants - 2, 2002, 2003])
    }

    @Test func permanentGrantsAreRestored() throws {
        var run = try afterLogin()
        let space = ProtectionSpace(scheme: "http", host: "h", port: 80, realm: "r", authenticationMethod: .httpBasic)
        run.table.restoreConsents([PermanentConsent(subject: mailer, space: space, user: "bob")])
        let fetch = try run.fetch(client: 2, subject: mailer)
        #expect(authorization(run, fetch) == basic("bob", "pw"))
        run.take(run.table.clearSession().orders)
        #expect(run.table.grants.map(\.consent) == [.always])
    }
}
