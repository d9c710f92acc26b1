import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Rule D19: what is stored does not go to a weaker scheme than the server has accepted before.
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

    @Test(arguments: [(sha, sha, true), (md5, sha, true), (sha, md5, false), (sha, basic, false), (md5, md5, true)])
    func d19TheStoredCredentialIsForNothingWeaker(first: String, later: String, isSent: Bool) throws {
        let run = try accepted(later, session: accepted(first).session)
        #expect(run.challenges.isEmpty == isSent)
    }

    @Test func d19ClearingTheSessionDoesNotForgetAndOtherRealmsAreFree() throws {
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
