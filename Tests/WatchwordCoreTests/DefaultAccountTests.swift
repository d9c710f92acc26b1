import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// One default among stored and accepted credentials, and a stored password that replaces an accepted one (SEMANTICS rule 18).
@Suite struct DefaultAccountTests {
    private let pattern = SpacePattern(scheme: "http", host: "h", port: 80)
    private let client = ClientTag(value: 1)

    private func loggedIn(as user: ExactText, _ password: String = "accepted") throws -> TableRun {
        var run = TableRun()
        let fetch = try run.fetch()
        run.challenge(fetch)
        run.answer(fetch, user: user, password)
        run.respond(fetch, 200)
        return run
    }

    private func defaults(_ run: TableRun) -> [ExactText?] {
        run.table.sessionCredentials(of: client, now: .zero).filter(\.isDefault).map(\.user)
    }

    @Test func oneStoredAndOneAcceptedHaveOneDefault() throws {
        var run = try loggedIn(as: "bob")
        let (carol, _) = run.table.give(login("carol", "stored"), for: pattern, of: client, now: .zero)
        #expect(defaults(run) == ["bob"])
        let orders = run.table.setDefault(number: carol, of: client, now: .zero)
        #expect(orders?.count == 1)
        #expect(defaults(run) == ["carol"])
        let fetch = try run.fetch()
        #expect(run.request(fetch)?.authorization == nil, "bob is not sent before a challenge")
        run.challenge(fetch)
        #expect(run.sent.last == basic("carol", "stored"))
        run.respond(fetch, 200)
        #expect(defaults(run) == ["carol"], "as accepted, too")
        let bob = try #require(run.table.sessionCredentials(of: client, now: .zero).first { $0.user == "bob" })
        _ = run.table.setDefault(number: bob.number, of: client, now: .zero)
        #expect(defaults(run) == ["bob"])
    }

    @Test func aStoredPasswordReplacesTheAcceptedOne() throws {
        var run = try loggedIn(as: "bob", "old")
        let (_, orders) = run.table.give(login("bob", "new"), for: pattern, of: client, now: .zero)
        #expect(orders.count == 1)
        #expect(run.table.sessionCredentials(of: client, now: .zero).count == 1)
        let fetch = try run.fetch()
        run.challenge(fetch)
        #expect(run.sent.last == basic("bob", "new"))
        run.respond(fetch, 200)
        #expect(!run.sent.dropFirst().contains(basic("bob", "old")))
        #expect(defaults(run) == ["bob"])
    }

    @Test func aPasswordStoredInTheKeyringReplacesTheAcceptedOne() throws {
        var run = try loggedIn(as: "bob", "old")
        run.table.recordStored(login("bob", "old"), for: pattern, of: client)
        #expect(run.table.sessionCount == 1, "an equal credential stays")
        run.table.recordStored(login("amy", "new"), for: pattern, of: client)
        #expect(run.table.sessionCount == 1, "the credential of another account stays, too")
        run.table.recordStored(login("bob", "new"), for: pattern, of: client)
        #expect(run.table.sessionCount == 0)
    }
}
