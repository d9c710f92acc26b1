import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// SECURITY-RULES D19: a stored credential is not sent with a weaker scheme than the server has accepted before.
@Suite struct DigestSchemeMemoryTests {
    private static let sha = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256"
    private static let md5 = "Digest realm=\"r\", nonce=\"m\", qop=\"auth\", algorithm=MD5"
    private static let basic = "Basic realm=\"r\""

    private func accepted(_ challenge: String, session: SessionCache = SessionCache()) throws -> MachineRun {
        var run = try MachineRun("http://h/b", session: session) { $0.preemption = .never }
        run.start()
        run.respond(401, ("WWW-Authenticate", challenge))
        if run.isAsking { run.answer(user: "bob", "pw") }
        run.respond(200)
        return run
    }

    @Test(
        "Rule D19: a stored credential answers no weaker scheme",
        arguments: [(sha, sha, true), (md5, sha, true), (sha, md5, false), (sha, basic, false), (md5, md5, true)])
    func aStoredCredentialIsForNoWeakerScheme(first: String, later: String, isSent: Bool) throws {
        let run = try accepted(later, session: accepted(first).session)
        #expect(run.challenges.isEmpty == isSent)
    }

    @Test("Rule D19: clearing the session does not forget the strength, and other realms are independent")
    func clearingTheSessionDoesNotForgetTheStrengthAndOtherRealmsAreIndependent() throws {
        var session = try accepted(Self.sha).session
        _ = session.clear()
        let challenge = try #require(digestChallenge("realm=\"r\", nonce=\"m\", qop=\"auth\""))
        let other = try #require(digestChallenge("realm=\"s\", nonce=\"m\", qop=\"auth\""))
        let origin = Challenger.server(try FetchURL("http://h/").origin)
        #expect(session.nonces.accepted.isDowngrade(.digest(challenge), at: origin, path: "/", reach: .realm))
        #expect(!session.nonces.accepted.isDowngrade(.digest(other), at: origin, path: "/", reach: .realm))
        #expect(
            !session.nonces.accepted.isDowngrade(
                .digest(challenge), at: .server(try FetchURL("https://h/").origin), path: "/", reach: .realm))
    }
}
