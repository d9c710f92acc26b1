import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The netrc file as a source of credentials: SEMANTICS rules 15, 17, 22 to 25 and 27.
@Suite struct NetrcFetchTests {
    private func entry(_ machine: String, _ user: ExactText = "bob", _ password: String = "pw") -> Netrc.Login {
        Netrc.Login(machine: machine, user: user, password: secret(password))
    }

    /// Returns a run with a challenged fetch.
    private func challenged(
        _ entries: [Netrc.Login]?, at url: String = "https://h/a/page", keyring: [KeyringItem]? = nil,
        isSubscribed: Bool = true, challenge: String = "Basic realm=\"r\"",
        change: (inout FetchRunParams) -> Void = { _ in }
    ) throws -> MachineRun {
        var run = try MachineRun(url, isSubscribed: isSubscribed, keyring: keyring, change: change)
        run.netrc = entries
        run.start()
        run.respond(401, ("WWW-Authenticate", challenge))
        return run
    }

    @Test("Rule 15: a netrc entry is tried after the challenge and remembered for the session")
    func aNetrcEntryIsTriedAfterTheChallengeAndRememberedForTheSession() throws {
        var run = try challenged([entry("other"), entry("H"), entry("h", "carol")])
        #expect(run.authorizations == [nil, basic("bob", "pw")])
        run.respond(200)
        #expect(run.result?.authentication?.source == .netrc)
        #expect(run.challenges.isEmpty)
        #expect(run.notes.map(\.source) == [.netrc])
        let change = run.effects.compactMap { if case .announce(let change) = $0 { change } else { nil } }
        #expect(change.map(\.kind) == [.stored] && change.map(\.source) == [.session])
        #expect(run.table.sessionCount == 1)
    }

    @Test func withoutTheOptionNothingIsRead() throws {
        let run = try challenged(nil)
        #expect(run.netrcReadings == 0 && run.isAsking)
    }

    @Test func aRefusedEntryIsNotSentAgainAndAQuestionIsAsked() throws {
        var run = try challenged([entry("h"), entry("h", "carol")])
        run.challengeBasic()
        #expect(run.authorizations == [nil, basic("bob", "pw")])
        #expect(run.challenges.last?.previousFailureCount == 1)
        #expect(run.challenges.last?.proposedCredential?.source == .netrc)
        run.answer(user: "bob", "right")
        run.respond(200)
        #expect(run.result?.authentication?.source == .client)
    }

    /// An entry is for every realm, but a server that changes its realm with each challenge gets it once.
    @Test(
        arguments: [
            ["Basic realm=\"1\"", "Basic realm=\"2\"", "Basic realm=\"3\""],
            ["Digest realm=\"r\", nonce=\"n\", qop=\"auth\"", "Basic realm=\"r\"", "Basic realm=\"s\""],
        ], [CredentialSource.netrc, .command])
    func aRefusalHoldsInEveryRealmAndByEveryScheme(challenges: [String], source: CredentialSource) throws {
        for isOneFetch in [true, false] {
            var run = TableRun()
            run.usesNetrc = true
            var fetch = try run.fetch("https://h/")
            for challenge in challenges {
                if run.question(fetch) != nil {
                    run.answer(fetch, .proceed)
                    fetch = try run.fetch("https://h/")
                }
                run.challenge(fetch, challenge)
                run.foundInNetrc(fetch, [entry("h"), entry("h", "carol")], from: source)
                if !isOneFetch, run.request(fetch) != nil { run.challenge(fetch, challenge) }
            }
            #expect(run.sent.count == 1)
            #expect(run.question(fetch) != nil)
        }
    }

    /// A login that a person has typed in one realm does not make the file's password valid again.
    @Test func aRefusalLastsWhenTheServerAcceptsAnother() throws {
        var run = TableRun()
        run.usesNetrc = true
        for realm in ["1", "2"] {
            let fetch = try run.fetch("https://h/\(realm)/")
            run.challenge(fetch, "Basic realm=\"\(realm)\"")
            run.foundInNetrc(fetch, [entry("h")])
            if realm == "1" { run.challenge(fetch, "Basic realm=\"\(realm)\"") }
            #expect(run.question(fetch) != nil)
            run.answer(fetch, user: "bob", "right")
            run.respond(fetch, 200)
        }
        #expect(run.sent.filter { $0 == basic("bob", "pw") }.count == 1)
    }

    /// A refused entry is sent once, not once by every program, like an item of the keyring.
    @Test func aRefusedEntryIsNotTriedByTheNextFetch() throws {
        var run = TableRun()
        run.usesNetrc = true
        for isFirst in [true, false] {
            let fetch = try run.fetch("https://h/")
            run.challenge(fetch)
            run.foundInNetrc(fetch, [entry("h")])
            if isFirst { run.challenge(fetch) }
            #expect(run.question(fetch) != nil)
            run.answer(fetch, .proceed)
        }
        #expect(run.sent == [basic("bob", "pw")])
    }

    @Test("A login of the session that is refused is not sent once more from the netrc file")
    func aLoginOfTheSessionThatIsRefusedIsNotSentFromTheFile() throws {
        var run = TableRun()
        run.usesNetrc = true
        let first = try run.fetch("https://h/")
        run.challenge(first)
        run.foundInNetrc(first, [entry("h")])
        run.respond(first, 200)
        for isRefused in [true, false] {
            let fetch = try run.fetch("https://h/")
            run.challenge(fetch)
            run.foundInNetrc(fetch, [entry("h")])
            #expect(run.sent.count == 2, "accepted once, refused once: \(isRefused)")
            #expect(run.question(fetch) != nil)
            run.answer(fetch, .proceed)
        }
    }

    @Test(arguments: [
        ("https://h/", "h", true), ("https://h/", "h:443", true), ("https://h/", "h:8443", false),
        ("https://h:8443/", "h", false), ("https://h:8443/", "h:8443", true), ("https://h/", "w.h", false),
        ("https://w.h/", "h", false), ("https://h/", "h.", false), ("https://[::1]/", "::1", true),
        ("https://[::1]:8443/", "::1", false), ("https://[::1]:8443/", "[::1]:8443", true),
        ("http://localhost/", "localhost", true), ("http://localhost:8080/", "localhost", false),
        ("http://127.0.0.1:8080/", "127.0.0.1:8080", true), ("http://h/", "h", false), ("http://h/", "h:80", false),
        ("https://h/", "h:0", false), ("https://h/", "https://h", false),
    ])
    func rules23And25AnEntryIsForItsHostAndPort(url: String, machine: String, isSent: Bool) throws {
        let run = try challenged([entry(machine)], at: url)
        #expect((run.authorizations.last == basic("bob", "pw")) == isSent)
    }

    @Test("Rule 25: over plain http the netrc file is not read")
    func overPlainHttpTheNetrcFileIsNotRead() throws {
        let run = try challenged([entry("h")], at: "http://h/")
        #expect(run.netrcReadings == 0 && run.isAsking)
    }

    @Test func theFetchNamesTheUser() throws {
        let carol = try challenged([entry("h"), entry("h", "carol", "hers")], at: "https://carol@h/")
        #expect(carol.authorizations.last == basic("carol", "hers"))
        let dave = try challenged([entry("h")], at: "https://dave@h/")
        #expect(dave.authorizations == [nil] && dave.isAsking)
    }

    @Test("Rule 15: the keyring comes before the netrc file")
    func theKeyringComesBeforeTheNetrcFile() throws {
        var attributes = exact("bob", port: 443)
        attributes["protocol"] = "https"
        var run = try challenged([entry("h", "bob", "file")], keyring: [item("1", attributes, "ring")])
        #expect(run.authorizations.last == basic("bob", "ring") && run.netrcReadings == 0)
        run.challengeBasic()
        #expect(run.authorizations == [nil, basic("bob", "ring"), basic("bob", "file")])
    }

    /// SEMANTICS rule 26: the default in the keyring may be another user.
    @Test(
        "Rule 26: the netrc file is not used where the keyring fails",
        arguments: KeyringFailure.Kind.allCases.filter { $0 != .absent })
    func theNetrcFileIsNotUsedWhereTheKeyringFails(kind: KeyringFailure.Kind) throws {
        var run = TableRun(isKeyringEnabled: true)
        run.usesNetrc = true
        for _ in 1...2 {
            let fetch = try run.fetch("https://h/")
            run.challenge(fetch)
            // A keyring that timed out is not searched again for a while.
            if run.isLookingUp(fetch) { run.found(fetch, failure: kind) }
            #expect(!run.isReadingNetrc(fetch) && run.question(fetch) != nil)
            run.answer(fetch, .proceed)
        }
        #expect(run.sent.isEmpty)
        run.now += Limits.keyringPause
        let fetch = try run.fetch("https://h/")
        run.challenge(fetch)
        run.found(fetch, [])
        run.foundInNetrc(fetch, [entry("h")])
        #expect(run.sent == [basic("bob", "pw")])
    }

    @Test func withoutAnyKeyringTheFileIsUsed() throws {
        var run = TableRun(isKeyringEnabled: true)
        run.usesNetrc = true
        let fetch = try run.fetch("https://h/")
        run.challenge(fetch)
        run.found(fetch, failure: .absent)
        run.foundInNetrc(fetch, [entry("h")])
        #expect(run.sent == [basic("bob", "pw")])
    }

    @Test("Rule 26: a keyring that has disappeared counts as failed")
    func aKeyringThatHasDisappearedCountsAsFailed() throws {
        var run = TableRun(isKeyringEnabled: true)
        run.usesNetrc = true
        let first = try run.fetch("https://i/")
        run.challenge(first)
        run.found(first, [])
        run.table.context.keyring.recordUse()
        let fetch = try run.fetch("https://h/")
        run.challenge(fetch)
        run.found(fetch, failure: .absent)
        #expect(!run.isReadingNetrc(fetch) && run.question(fetch) != nil)
    }

    @Test("Rule 26: the netrc file is not used where a keyring item is locked")
    func theNetrcFileIsNotUsedWhereAKeyringItemIsLocked() throws {
        var (one, other) = (exact("carol", port: 443), exact("dave", realm: "other", port: 443))
        (one["protocol"], other["protocol"]) = ("https", "https")
        let run = try challenged([entry("h")], keyring: [item("1", one, nil), item("2", other, "ring")])
        #expect(run.authorizations == [nil] && run.isAsking && run.netrcReadings == 0)
    }

    @Test func aProposedEntryIsNotSentAfterTheFileChanged() throws {
        var run = TableRun()
        run.usesNetrc = true
        let fetch = try run.fetch("https://h/", subscription: Subscription(delivery: .request, mode: .everything))
        run.challenge(fetch)
        run.foundInNetrc(fetch, [entry("h")])
        #expect(run.question(fetch)?.proposedCredential?.source == .netrc)
        run.table.netrcChanged()
        run.answer(fetch, .credential(.proposed))
        #expect(run.sent.isEmpty)
        #expect(run.question(fetch)?.error == .nothingProposed)
    }

    @Test func entriesReadWhileTheFileChangedAreReadAgain() throws {
        var run = TableRun()
        run.usesNetrc = true
        let fetch = try run.fetch("https://h/")
        run.challenge(fetch)
        run.table.netrcChanged()
        run.foundInNetrc(fetch, [entry("h")])
        #expect(run.sent.isEmpty && run.isReadingNetrc(fetch))
        run.foundInNetrc(fetch, [entry("h", "carol")])
        #expect(run.sent == [basic("carol", "pw")])
    }

    @Test func withSeveralKeyringItemsAQuestionIsAsked() throws {
        var (one, other) = (exact("bob", port: 443), exact("carol", port: 443))
        (one["protocol"], other["protocol"]) = ("https", "https")
        let run = try challenged([entry("h")], keyring: [item("1", one, "ring"), item("2", other, "ring")])
        #expect(run.authorizations == [nil] && run.isAsking)
    }

    @Test(
        "Rule 27: a netrc entry answers no weak challenge, and only Basic and Digest",
        arguments: ["NTLM", "Negotiate", "Bearer realm=\"r\"", "Basic", "Digest realm=\"r\", nonce=\"n\""])
    func aNetrcEntryAnswersOnlyBasicAndDigestOfFullForm(challenge: String) throws {
        let run = try challenged([entry("h")], challenge: challenge)
        #expect(run.authorizations == [nil])
    }

    /// A response to an NTLM challenge can be relayed, and an entry was not written for that.
    @Test func theFileIsNotReadForAnNTLMChallenge() throws {
        var run = TableRun()
        run.usesNetrc = true
        run.schemes.ntlmHosts = [try HostPattern("h")]
        let fetch = try run.fetch("https://h/")
        run.challenge(fetch, "NTLM")
        #expect(!run.isReadingNetrc(fetch))
        #expect(run.question(fetch)?.protectionSpace.authenticationMethod == .ntlm)
    }

    @Test func anEntryAnswersADigestChallenge() throws {
        let run = try challenged([entry("h")], challenge: "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"")
        #expect(run.authorizations.last??.hasPrefix("Digest username=\"bob\"") == true)
    }

    /// The accepted strength counts for every realm of the server, because an entry names none.
    @Test func aSchemeWeakerThanTheAcceptedOneIsNotAnswered() throws {
        var run = TableRun()
        run.usesNetrc = true
        let strong = try run.fetch("https://h/a/")
        run.challenge(strong, "Digest realm=\"strong\", nonce=\"n\", qop=\"auth\"")
        run.foundInNetrc(strong, [entry("h")])
        run.respond(strong, 200)
        _ = run.table.clearSession()
        let weak = try run.fetch("https://h/b/")
        run.challenge(weak)
        run.foundInNetrc(weak, [entry("h")])
        #expect(run.sent.count == 1)
        #expect(run.question(weak)?.isDowngrade == true)
    }

    @Test func withoutStorageTheFileIsNotRead() throws {
        let run = try challenged([entry("h")]) { $0.useStorage = false }
        #expect(run.netrcReadings == 0 && run.isAsking)
    }

    @Test func whileLockedTheFileIsNotRead() throws {
        var run = try MachineRun("https://h/")
        run.netrc = [entry("h")]
        _ = run.table.lock()
        run.start()
        run.challengeBasic()
        #expect(run.netrcReadings == 0 && run.isAsking)
    }

    @Test func aProposedEntryIsNotSentWhileLocked() throws {
        var run = TableRun()
        run.usesNetrc = true
        let fetch = try run.fetch("https://h/", subscription: Subscription(delivery: .request, mode: .everything))
        run.challenge(fetch)
        run.foundInNetrc(fetch, [entry("h")])
        #expect(run.question(fetch)?.proposedCredential?.source == .netrc)
        _ = run.table.lock()
        run.answer(fetch, .credential(.proposed))
        #expect(run.sent.isEmpty)
    }

    @Test func theFileIsNotReadForAProxyChallenge() throws {
        var run = TableRun(proxy: wayOut)
        run.usesNetrc = true
        let fetch = try run.fetch("https://h/")
        run.challengeFromProxy(fetch)
        #expect(!run.isReadingNetrc(fetch) && run.question(fetch)?.protectionSpace.proxyType == .http)
    }

    @Test func theFileIsNotReadWithAProxyThatTheClientNames() throws {
        var run = TableRun()
        run.usesNetrc = true
        let fetch = try run.fetch("https://h/") { $0.proxy = .named(NamedProxy(url: "http://q:3128")) }
        run.challenge(fetch)
        #expect(!run.isReadingNetrc(fetch) && run.question(fetch) != nil)
    }

    @Test(arguments: [Consent.once, .no])
    func aSandboxedProgramNeedsConsent(consent: Consent) throws {
        var run = TableRun()
        run.usesNetrc = true
        let fetch = try run.fetch("https://h/", subject: Subject(.flatpak, "org.gnome.Maps", isSandboxed: true))
        run.challenge(fetch)
        run.foundInNetrc(fetch, [entry("h")])
        #expect(run.sent.isEmpty)
        #expect(run.confirmation(fetch)?.source == .netrc && run.confirmation(fetch)?.user == "bob")
        run.confirm(fetch, consent)
        #expect(run.sent == (consent == .once ? [basic("bob", "pw")] : []))
        #expect((run.question(fetch) != nil) == (consent == .no))
    }

    @Test(arguments: [("b\nob", "pw"), ("bob", "p\nw"), ("bob", "p\u{7F}w")])
    func entriesThatNoSchemeCanEncodeAreSkipped(user: String, password: String) throws {
        let run = try challenged([entry("h", ExactText(user), password), entry("h", "carol")])
        #expect(run.authorizations == [nil, basic("carol", "pw")])
    }

    @Test func anEntryIsNotSentAfterARedirectToAnotherHost() throws {
        var run = try challenged([entry("h")])
        run.respond(302, ("Location", "https://other/"))
        run.challengeBasic()
        #expect(run.authorizations == [nil, basic("bob", "pw"), nil] && run.isAsking)
    }
}
