import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Users whose names are canonically equivalent have separate accounts, in every lookup (SECURITY-RULES X2).
@Suite struct LookalikeUserTests {
    private static let pairs: [(ExactText, ExactText)] = [("K", "\u{212A}"), ("Zo\u{EB}", "Zoe\u{308}")]

    /// Returns a session in which `user` has logged in.
    private func run(as user: ExactText) throws -> TableRun {
        var run = TableRun()
        let fetch = try run.fetch("https://h/")
        run.challenge(fetch)
        run.answer(fetch, user: user, "right")
        run.respond(fetch, 200)
        return run
    }

    @Test("Rule X2: a fetch of one user is never sent as a lookalike user", arguments: pairs)
    func aFetchOfOneIsNeverSentAsTheOther(one: ExactText, other: ExactText) throws {
        var run = try run(as: one)
        let fetch = try run.fetch("https://h/") { $0.credential = login(other, "another") }
        run.challenge(fetch)
        #expect(run.sent == [basic(one, "right"), basic(other, "another")])
        run.respond(fetch, 200)
        #expect(run.table.sessionCount == 2)
    }

    @Test(arguments: pairs) func oneDoesNotWaitForTheOther(one: ExactText, other: ExactText) throws {
        var run = TableRun()
        let (first, second) = (
            try run.fetch { $0.credential = login(one, "pw") }, try run.fetch { $0.credential = login(other, "pw") }
        )
        run.challenge(first)
        run.challenge(second)
        #expect(Set(run.sent).count == 2)
        run.challenge(first)
        run.respond(second, 200)
        #expect(run.results[second]?.response.status == 200)
    }

    @Test("Rule X2: the keyring separates lookalike users", arguments: pairs)
    func theKeyringDistinguishesThem(one: ExactText, other: ExactText) throws {
        let url = try FetchURL("http://h/")
        let space = ProtectionSpace(
            scheme: "http", host: "h", port: 80, realm: "r", authenticationMethod: .httpBasic)
        let items = [item("1", exact(one).merging(KeyringAttributes.everything) { $1 }, "pw")]
        #expect(KeyringMatch(items, for: space, at: url, user: Account(user: other)) == .none)
        #expect(KeyringWrite(login(other, "pw"), for: SpacePattern(space), over: items).unchanged == nil)
        #expect(KeyringWrite(login(one, "pw"), for: SpacePattern(space), over: items).unchanged == "/items/1")
        let twice = KeyringMatch(items + [item("2", exact(other), "pw")], for: space, at: url, user: nil)
        #expect(twice == .undecided, "two different users")
    }

    @Test func pathsAreComparedByteForByte() throws {
        let space = ProtectionSpace(
            scheme: "http", host: "h", port: 80, realm: "r", authenticationMethod: .httpBasic)
        let items = [item("1", exact("bob").merging(["object": "/\u{212A}"]) { $1 }, "pw")]
        #expect(KeyringMatch(items, for: space, at: try FetchURL("http://h/K/x"), user: nil) == .none)
    }

    @Test func noncesAreComparedByteForByte() throws {
        var nonces = DigestNonces()
        let one = try #require(digestChallenge("realm=\"r\", nonce=\"K\", qop=auth"))
        let other = try #require(digestChallenge("realm=\"r\", nonce=\"\u{212A}\", qop=auth"))
        _ = nonces.nextResponse(to: one, at: here, clientNonce: "c")
        #expect(!nonces.remembers(other, at: here))
        #expect(one != other)
    }
}
