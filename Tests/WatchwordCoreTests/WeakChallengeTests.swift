import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Old and malformed challenges through whole fetches: SEMANTICS rule 27.
@Suite struct WeakChallengeTests {
    private static let digest = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""
    private static let legacy = "Digest realm=\"r\", nonce=\"m\""

    private func permanent(_ user: ExactText = "bob") -> LoginCredential {
        LoginCredential(user: user, password: secret("pw"), persistence: .permanent)
    }

    /// Returns a run in which bob has answered `challenge` and the server has accepted the answer.
    private func accepted(_ challenge: String, session: SessionCache = SessionCache()) throws -> MachineRun {
        var run = try MachineRun(session: session, keyring: [])
        run.start()
        run.respond(401, ("WWW-Authenticate", challenge))
        run.answer(.credential(.login(permanent())))
        run.respond(200)
        return run
    }

    @Test("Rules 27 and B1: Basic without a realm is asked about and remembered for the session only")
    func basicWithoutARealmIsAskedAboutAndRememberedForTheSessionOnly() throws {
        let run = try accepted("Basic")
        #expect(run.challenges.map(\.protectionSpace.realm) == [nil])
        #expect(run.challenges.map(\.persistenceAllowed) == [[.none, .forSession]])
        #expect(run.authorizations == [nil, basic("bob", "pw")])
        #expect(!run.effects.contains { if case .store = $0 { true } else { false } })
        var next = try MachineRun(session: run.session)
        next.start()
        #expect(next.authorizations == [basic("bob", "pw")])
    }

    @Test("Rules 27 and B1: a credential of a realm answers no challenge without one")
    func aCredentialOfARealmAnswersNoChallengeWithoutOne() throws {
        let run = try accepted("Basic realm=\"r\"")
        #expect(run.challenges.map(\.persistenceAllowed) == [[.none, .forSession, .permanent]])
        var next = try MachineRun("http://h/elsewhere", session: run.session)
        next.start()
        next.respond(401, ("WWW-Authenticate", "Basic"))
        #expect(next.isAsking)
        #expect(next.authorizations == [nil])
    }

    @Test("Rule 27: a credential that a better scheme has accepted does not answer a weak challenge")
    func aCredentialThatABetterSchemeHasAcceptedDoesNotAnswerAWeakChallenge() throws {
        let run = try accepted(Self.digest)
        for challenge in [Self.legacy, "Basic"] {
            var next = try MachineRun(session: run.session) { $0.preemption = .never }
            next.start()
            next.respond(401, ("WWW-Authenticate", challenge))
            #expect(next.isAsking, "\(challenge)")
            #expect(next.authorizations == [nil])
        }
    }

    @Test("Rules 27 and D3: an accepted answer to an RFC 2069 challenge is remembered")
    func anAcceptedAnswerToAnRFC2069ChallengeIsRemembered() throws {
        let run = try accepted(Self.legacy)
        #expect(run.challenges[0].offers[0].weak == [.noQop])
        let text = try #require(run.authorizations[1])
        #expect(!text.contains("qop") && !text.contains("nc=") && !text.contains("cnonce"))
        var next = try MachineRun(session: run.session)
        next.start()
        #expect(next.authorizations[0]?.hasPrefix("Digest username=\"bob\", realm=\"r\", nonce=\"m\"") == true)
    }

    @Test("Rule 27: a better scheme of the same response is asked about")
    func aBetterSchemeOfTheSameResponseIsAskedAbout() throws {
        var run = try MachineRun()
        run.start()
        run.respond(
            401, ("WWW-Authenticate", "Basic, \(Self.legacy)"), ("WWW-Authenticate", "Basic realm=x y, \(Self.digest)"))
        #expect(run.challenges.last?.protectionSpace.authenticationMethod == .httpDigest)
        run.answer(user: "bob", "pw")
        #expect(run.authorizations.last??.contains("nonce=\"n\"") == true)
    }

    /// The item may be for a stronger scheme, and an attacker in between may have removed the other offers.
    @Test(
        "Rule 27: a keyring item does not answer a weak challenge",
        arguments: ["Digest realm=\"r\", nonce=\"n\"", "Basic"])
    func aKeyringItemDoesNotAnswerAWeakChallenge(field: String) throws {
        var anywhere = exact("bob")
        anywhere["domain"] = nil
        anywhere["authtype"] = nil
        var run = try MachineRun("http://h/", keyring: [item("1", anywhere, "stored")])
        run.start()
        run.respond(401, ("WWW-Authenticate", field))
        #expect(run.authorizations == [nil] && run.challenges.count == 1)
        #expect(run.challenges[0].isDowngrade)
    }
}
