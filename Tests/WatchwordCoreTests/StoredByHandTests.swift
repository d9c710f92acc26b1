import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Several users, credentials that a client provides, defaults, lock: SEMANTICS rules 17 and 18.
@Suite struct StoredByHandTests {
    private let pattern = SpacePattern(scheme: "http", host: "h", port: 80)
    private let client = ClientTag(value: 1)

    private func credential(_ user: ExactText, _ password: String = "pw") -> LoginCredential {
        LoginCredential(user: user, password: secret(password))
    }

    private func logIn(_ run: inout TableRun, as user: ExactText) throws {
        let fetch = try run.fetch("http://\(user)@h/a/page")
        run.challenge(fetch)
        run.answer(fetch, user: user, "pw-\(user)")
        run.respond(fetch, 200)
    }

    private func user(of run: inout TableRun, _ url: String = "http://h/a/x") throws -> String? {
        let fetch = try run.fetch(url)
        defer { run.abort(fetch) }
        return run.request(fetch)?.authorization?.revealed
    }

    @Test("Rule 18: the first user is the default until another is set")
    func theFirstUserIsTheDefaultUntilAnotherIsSet() throws {
        var run = TableRun()
        try logIn(&run, as: "bob")
        try logIn(&run, as: "carol")
        #expect(try user(of: &run) == basic("bob", "pw-bob"))
        let listed = run.table.sessionCredentials(of: client, now: .zero)
        #expect(listed.map(\.user) == ["bob", "carol"])
        #expect(listed.map(\.isDefault) == [true, false])
        let orders = run.table.setDefault(number: listed[1].number, of: client, now: .zero)
        run.take(try #require(orders))
        #expect(try user(of: &run) == basic("carol", "pw-carol"))
        let unknown = run.table.setDefault(number: 99, of: client, now: .zero)
        #expect(unknown == nil)
    }

    @Test func aProvidedCredentialIsForItsClientOnly() throws {
        var run = TableRun(sharing: .client)
        _ = run.table.give(credential("eve"), for: pattern, of: client, now: .zero)
        let others = try run.fetch(client: 2)
        run.challenge(others)
        #expect(run.request(others) == nil)
        #expect(run.question(others)?.proposedCredential == nil)
        let own = try run.fetch(client: 1)
        run.challenge(own)
        #expect(run.request(own)?.authorization?.revealed == basic("eve", "pw"))
    }

    @Test func providedCredentialsAreBounded() {
        var cache = SessionCache(limits: SessionLimits(entries: 2))
        for user in ["a", "b", "c"] as [ExactText] { _ = cache.give(credential(user), for: pattern, now: .zero) }
        #expect(cache.listing(now: .zero).map(\.user) == ["b", "c"])
    }

    @Test("Rule 16: a fetch that names a user gets that user's entry")
    func aFetchThatNamesAUserGetsThatUsersEntry() throws {
        var run = TableRun()
        try logIn(&run, as: "bob")
        try logIn(&run, as: "carol")
        #expect(try user(of: &run, "http://carol@h/a/x") == basic("carol", "pw-carol"))
        #expect(try user(of: &run, "http://dave@h/a/x") == nil)
    }

    @Test("Rule 18: each change is reported once, and storing the same again is not")
    func eachChangeIsReportedOnce() throws {
        var run = TableRun()
        try logIn(&run, as: "bob")
        #expect(run.effects.count == 1)
        let again = try run.fetch()
        run.respond(again, 200)
        #expect(run.effects.count == 1)
        let number = run.table.sessionCredentials(of: client, now: .zero)[0].number
        let orders = run.table.setDefault(number: number, of: client, now: .zero)
        run.take(try #require(orders))
        #expect(run.effects.count == 1)
        let (_, stored) = run.table.give(credential("eve"), for: pattern, of: client, now: .zero)
        let (_, same) = run.table.give(credential("eve"), for: pattern, of: client, now: .zero)
        #expect((stored.count, same.count) == (1, 0))
        let (count, forgotten) = run.table.forget(number: number, pattern: nil, of: client)
        #expect((count, forgotten.count) == (1, 1))
        let nothing = run.table.forget(number: number, pattern: nil, of: client).orders
        #expect(nothing.isEmpty)
    }

    @Test func aProvidedCredentialIsTriedAfterAChallengeOnly() throws {
        var run = TableRun()
        _ = run.table.give(credential("bob"), for: pattern, of: client, now: .zero)
        let fetch = try run.fetch { $0.interaction = .none }
        #expect(run.sent.isEmpty)
        run.challenge(fetch)
        #expect(run.sent == [basic("bob", "pw")])
        run.respond(fetch, 200)
        #expect(run.results[fetch]?.authentication?.source == .session)
        #expect(run.effects.isEmpty)
        #expect(try user(of: &run) == basic("bob", "pw"))
        #expect(run.table.sessionCredentials(of: client, now: .zero).count == 1)
    }

    @Test func aWrongProvidedCredentialIsForgottenAfterOneTry() throws {
        var run = TableRun()
        _ = run.table.give(credential("bob", "wrong"), for: pattern, of: client, now: .zero)
        let ids = try (1...20).map { try run.fetch(client: $0) }
        run.serve(password: "right")
        #expect(run.sent == [basic("bob", "wrong")])
        #expect(run.asking == [ids[0]])
        #expect(run.table.sessionCredentials(of: client, now: .zero).isEmpty)
    }

    @Test func theMostSpecificCredentialIsUsed() throws {
        var run = TableRun()
        var realm = pattern
        realm.realm = "r"
        var other = pattern
        other.realm = "other"
        _ = run.table.give(credential("any"), for: pattern, of: client, now: .zero)
        _ = run.table.give(credential("realm"), for: realm, of: client, now: .zero)
        _ = run.table.give(credential("other"), for: other, of: client, now: .zero)
        let fetch = try run.fetch()
        run.challenge(fetch)
        #expect(run.sent == [basic("realm", "pw")])
    }

    @Test("Rule 18: a credential stored by hand can be the default")
    func aCredentialStoredByHandCanBeTheDefault() throws {
        var run = TableRun()
        _ = run.table.give(credential("bob"), for: pattern, of: client, now: .zero)
        let (carol, _) = run.table.give(credential("carol"), for: pattern, of: client, now: .zero)
        #expect(run.table.sessionCredentials(of: client, now: .zero).map(\.isDefault) == [true, false])
        let orders = run.table.setDefault(number: carol, of: client, now: .zero)
        #expect(orders?.count == 1)
        #expect(run.table.sessionCredentials(of: client, now: .zero).map(\.isDefault) == [false, true])
        let fetch = try run.fetch()
        run.challenge(fetch)
        #expect(run.sent == [basic("carol", "pw")])
    }

    @Test func forgettingASpaceRemovesEveryCredentialInIt() throws {
        var run = TableRun()
        try logIn(&run, as: "bob")
        _ = run.table.give(credential("eve"), for: pattern, of: client, now: .zero)
        _ = run.table.give(
            credential("eve"), for: SpacePattern(scheme: "http", host: "i", port: 80), of: client, now: .zero)
        let removed = run.table.forget(number: nil, pattern: pattern, of: client).count
        #expect(removed == 2)
        #expect(run.table.sessionCredentials(of: client, now: .zero).map(\.pattern.host) == ["i"])
    }

    @Test func aLockedBrokerUsesAndStoresNothing() throws {
        var run = TableRun(isKeyringEnabled: true)
        try logIn(&run, as: "bob")
        run.take(run.table.lock())
        #expect(run.table.sessionCount == 0)
        let fetch = try run.fetch()
        run.challenge(fetch)
        #expect(!run.isLookingUp(fetch))
        #expect(run.question(fetch)?.persistenceAllowed == [Persistence.none])
        run.answer(fetch, user: "bob", "pw-bob", .permanent)
        run.respond(fetch, 200)
        #expect(run.table.sessionCount == 0)
        run.table.unlock()
        let next = try run.fetch()
        run.challenge(next)
        #expect(run.isLookingUp(next))
    }

    @Test func withSharingByClientNoOtherClientUsesIt() throws {
        var run = TableRun()
        run.table = FetchTable(sharing: .client)
        try logIn(&run, as: "bob")
        #expect(try user(of: &run) == basic("bob", "pw-bob"))
        let other = try run.fetch(client: 2)
        #expect(run.request(other)?.authorization == nil)
        run.challenge(other)
        #expect(run.asking == [other])
        #expect(run.table.sessionCredentials(of: ClientTag(value: 2), now: .zero).isEmpty)
        run.table.forgetClient(client)
        #expect(run.table.sessionCount == 0)
    }

    @Test func unusedSessionCredentialsExpire() throws {
        var run = TableRun()
        try logIn(&run, as: "bob")
        _ = run.table.give(credential("eve"), for: pattern, of: client, now: .zero)
        run.now = Limits.sessionIdle - .seconds(1)
        run.tick()
        #expect(run.table.sessionCredentials(of: client, now: run.now).count == 2)
        run.now = Limits.sessionIdle
        run.tick()
        #expect(run.table.sessionCredentials(of: client, now: .zero).isEmpty)
        #expect(run.table.sessionCount == 0)
    }

    @Test func afterALockAWaitingFetchDoesNotFollowAStoredCredential() throws {
        var run = TableRun(isKeyringEnabled: true)
        let (first, second) = (try run.fetch(client: 1), try run.fetch(client: 2))
        for id in [first, second] { run.challenge(id) }
        run.found(first, [item("1", exact("bob"), "pw")])
        run.take(run.table.lock())
        run.respond(first, 200)
        #expect(run.sent == [basic("bob", "pw")])
        #expect(run.asking == [second])
    }

    @Test func afterALockTheProposedCredentialIsNotSent() throws {
        var run = TableRun(isKeyringEnabled: true)
        let fetch = try run.fetch(subscription: Subscription(delivery: .request, mode: .everything))
        run.challenge(fetch)
        run.found(fetch, [item("1", exact("bob"), "pw")])
        #expect(run.question(fetch)?.proposedCredential?.source == .keyring)
        run.take(run.table.lock())
        run.answer(fetch, .credential(.proposed))
        #expect(run.sent.isEmpty)
        #expect(run.question(fetch)?.error == .nothingProposed)
    }

    @Test func afterALockAStoredCredentialThatWaitedForAVerdictIsNotSent() throws {
        var run = TableRun(isKeyringEnabled: true)
        let own = try run.fetch(client: 1) {
            $0.credential = LoginCredential(user: "bob", password: secret("pw"))
        }
        let second = try run.fetch(client: 2)
        for id in [own, second] { run.challenge(id) }
        run.found(second, [item("1", exact("bob"), "pw")])
        #expect(run.isWaiting(second))
        run.take(run.table.lock())
        run.fail(own)
        #expect(run.sent == [basic("bob", "pw")])
        #expect(run.asking == [second])
    }

    @Test("Rule 19: canonically equivalent realms have separate credentials")
    func canonicallyEquivalentRealmsHaveSeparateCredentials() {
        var run = TableRun()
        for realm in ["\u{E9}", "e\u{301}"] {
            var pattern = pattern
            pattern.realm = ExactText(realm)
            _ = run.table.give(credential("bob", realm), for: pattern, of: client, now: .zero)
        }
        #expect(run.table.sessionCredentials(of: client, now: .zero).count == 2)
    }
}
