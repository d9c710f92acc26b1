import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The credential that a challenge proposes answers this challenge, or names only a user (SEMANTICS rules 6 and 14).
@Suite struct ProposedCredentialTests {
    private let digest = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\""

    /// A keyring item for Digest only was refused, and the client requests the next scheme.
    @Test func afterARejectNothingIsProposedThatCannotBeUsed() throws {
        var run = TableRun(isKeyringEnabled: true)
        let fetch = try run.fetch("http://h/")
        let both = "\(digest), Basic realm=\"r\""
        run.challenge(fetch, both)
        run.found(fetch, [item("1", exact("bob").merging(["authtype": "digest"]) { $1 }, "pw")])
        run.challenge(fetch, both)
        #expect(run.asksAbout(fetch) == .httpDigest)
        #expect(run.question(fetch)?.proposedCredential?.hasPassword == true)
        run.answer(fetch, .reject)
        #expect(run.asksAbout(fetch) == .httpBasic)
        #expect(
            run.question(fetch)?.proposedCredential
                == ProposedCredential(user: "bob", hasPassword: false, source: .keyring))
        run.answer(fetch, .credential(.proposed))
        #expect(run.question(fetch)?.error == .nothingProposed)
        #expect(run.sent.count == 1)
    }

    /// An item for every scheme is proposed for the next scheme, and used if the client answers so.
    @Test("Rules 6 and 14: after a reject a proposed credential that the next scheme can carry is used")
    func afterARejectTheProposedCredentialIsUsed() throws {
        var run = TableRun(isKeyringEnabled: true)
        var subscription = Subscription(delivery: .request)
        subscription.mode = .everything
        let fetch = try run.fetch("http://h/", subscription: subscription)
        run.challenge(fetch, "\(digest), Basic realm=\"r\"")
        var attributes = exact("bob")
        attributes["authtype"] = nil
        run.found(fetch, [item("1", attributes, "pw")])
        #expect(run.asksAbout(fetch) == .httpDigest)
        run.answer(fetch, .reject)
        #expect(run.asksAbout(fetch) == .httpBasic)
        #expect(run.question(fetch)?.proposedCredential?.hasPassword == true)
        run.answer(fetch, .credential(.proposed))
        #expect(run.sent == [basic("bob", "pw")])
    }

    @Test func aTokenIsNotAskedForWithAUsersName() throws {
        var run = TableRun()
        let fetch = try run.fetch("https://h/")
        let both = "\(digest), Bearer realm=\"r\""
        run.challenge(fetch, both)
        run.answer(fetch, user: "bob", "wrong")
        run.challenge(fetch, both)
        #expect(run.question(fetch)?.proposedCredential?.user == "bob")
        run.answer(fetch, .reject)
        #expect(run.asksAbout(fetch) == .bearer)
        #expect(run.question(fetch)?.proposedCredential == nil)
    }
}
