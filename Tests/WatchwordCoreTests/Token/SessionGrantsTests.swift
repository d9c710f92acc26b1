import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The grants of the session, without a keyring.
@Suite struct SessionGrantsTests {
    private let mine = ClientTag(value: 1)
    private let other = ClientTag(value: 2)
    private let limits = SessionLimits(idle: .seconds(10), lifetime: .seconds(100))

    private func session(_ grant: OAuthGrant, of owner: ClientTag? = nil) -> SessionGrants {
        var session = SessionGrants()
        session.record(grant, of: owner, isNew: true, now: .zero)
        return session
    }

    private func item(_ grant: OAuthGrant) -> KeyringItem {
        KeyringItem(
            id: "/items/1", label: grant.label, attributes: OAuthGrant.attributes(of: grant.key), secret: grant.secret,
            isLocked: false)
    }

    @Test func aGrantThatTheKeyringHasIsReadThere() {
        let grant = grant()
        var session = session(grant)
        func use(_ hasKeyring: Bool) -> SessionGrants.Source {
            session.use(grant.key, of: nil, hasKeyring: hasKeyring, now: .zero)
        }
        #expect(use(true) == .session(grant))
        session.recordSaved(WatchwordCoreTests.grant("older"), of: nil)
        #expect(use(true) == .session(grant))
        session.recordSaved(grant, of: nil)
        #expect(use(true) == .keyring(otherwise: grant))
        #expect(use(false) == .session(grant))
    }

    @Test func aGrantThatIsBeingRemovedIsNotFound() {
        let key = grant().key
        var session = SessionGrants()
        func use() -> SessionGrants.Source { session.use(key, of: nil, hasKeyring: true, now: .zero) }
        for _ in 1...2 { session.beginRemoval(of: [key]) }
        session.endRemoval(of: [key])
        #expect(use() == .session(nil))
        session.endRemoval(of: [key])
        #expect(use() == .keyring(otherwise: nil))
        session.beginRemoval(of: [key])
        session.record(grant("new"), of: nil, isNew: true, now: .zero)
        #expect(use() == .session(grant("new")), "a login after the removal began")
    }

    @Test func aClientManagesItsOwnAndTheSharedOnes() {
        let (shared, own) = (grant { $0.access = secret("a") }, grant("own"))
        var session = session(shared)
        #expect(session.all(of: mine, with: []).map(\.item) == [nil])
        #expect(session.all(of: mine, with: [item(grant("old"))]).map(\.grant) == [shared], "with its access token")
        session = self.session(own, of: mine)
        #expect(session.all(of: mine, with: []).map(\.grant) == [own] && session.all(of: other, with: []).isEmpty)
        #expect(session.all(of: other, with: [item(own)]).map(\.item) == ["/items/1"])
        session.forget([own.key], of: other)
        #expect(!session.isEmpty)
        session.endSession(of: mine)
        #expect(session.isEmpty)
    }

    @Test func aSessionEndsForOneOriginOrAll() throws {
        var session = session(grant())
        session.endSession(try FetchURL("https://other.example/").origin)
        #expect(!session.isEmpty)
        session.endSession(try FetchURL("https://api.example/").origin)
        #expect(session.isEmpty)
    }

    @Test func theUseOfATokenKeepsItsGrant() {
        let held = grant { $0.access = secret("a") }
        var session = session(held)
        session.expire(limits, now: .seconds(9)) { _ in nil }
        #expect(!session.isEmpty)
        session.expire(limits, now: .seconds(15)) { _ in .seconds(8) }
        #expect(!session.isEmpty)
        session.expire(limits, now: .seconds(18)) { _ in nil }
        #expect(session.isEmpty, "idle since its use")

        session.record(held, of: nil, isNew: true, now: .zero)
        session.record(held, of: nil, isNew: false, now: .seconds(99))
        session.expire(limits, now: .seconds(100)) { _ in .seconds(99) }
        #expect(session.isEmpty, "a renewal does not begin its lifetime again")
    }

    @Test func searchesUseAGrantOneAfterTheOther() {
        let (one, two) = (grant().key, OAuthGrant.Key(resource: "r", issuer: "i", clientID: "c"))
        var queue = GrantQueue()
        let uses = [
            queue.use(one, by: 1), queue.use(one, by: 1), queue.use(one, by: 2), queue.use(one, by: 3),
            queue.use(two, by: 2),
        ]
        #expect(uses == [true, true, false, false, true])
        #expect(queue.release(2).isEmpty, "it was not first")
        #expect(queue.release(1).map(\.search) == [3])
        #expect(queue.release(3).isEmpty && queue.use(one, by: 4))
    }
}

/// Logins that failed, or did not help.
@Suite struct RecentLoginsTests {
    private let refused = FetchFailure(.loginFailed, "no")

    private func machine(_ url: String = "https://api.example/v1/x", needsLogin: Bool = true) throws -> TokenMachine {
        try TokenRun(url: url, needsLogin: needsLogin).machine
    }

    @Test func aFailureCountsForSeconds() throws {
        var recent = RecentLogins()
        let machine = try machine(needsLogin: false)
        recent.record(refused, of: machine, isOfPerson: false, now: .zero)
        #expect(recent.failure(of: machine.query, now: .seconds(4)) == refused)
        #expect(recent.failure(of: machine.query, now: .seconds(5)) == nil)
    }

    @Test func aFetchThatCameAfterALoginBeginsItsOwn() throws {
        var recent = RecentLogins()
        let machine = try machine(needsLogin: false)
        recent.record(refused, of: machine, isOfPerson: true, now: .seconds(2))
        var query = machine.query
        query.since = .seconds(1)
        #expect(recent.failure(of: query, now: .seconds(3)) == refused)
        query.since = .seconds(2)
        #expect(recent.failure(of: query, now: .seconds(3)) == nil)
    }

    @Test("After each login that did not help, no person is asked for twice as long")
    func loginsThatDoNotHelp() throws {
        var recent = RecentLogins()
        let query = try machine().query
        var now = Duration.zero
        for wait in [60, 120, 240] {
            recent.recordLogin(query, now: now)
            now += .seconds(1)
            #expect(recent.failure(of: query, now: now)?.kind == .loginFailed)
            #expect(recent.refusal(of: query, now: now + .seconds(wait - 1)) != nil)
            #expect(recent.refusal(of: query, now: now + .seconds(wait)) == nil)
            now += .seconds(wait)
        }
        #expect(recent.failure(of: query, now: now + .seconds(60)) == nil, "the token is not fresh any more")
        now -= .seconds(1)
        #expect(recent.refusal(of: query, now: now) != nil)
        recent.forget { $0.path == "/v1" }
        #expect(recent.refusal(of: query, now: now) == nil)
    }

    @Test func otherPagesOfTheTableMayRefuseTheTokenToo() throws {
        var recent = RecentLogins()
        let (query, other) = (try machine().query, try machine("https://api.example/v1/y").query)
        recent.recordLogin(query, now: .zero)
        _ = recent.failure(of: query, now: .seconds(1))
        #expect(recent.refusal(of: other, now: .seconds(2)) != nil)
        #expect(recent.refusal(of: other, now: .seconds(60)) == nil)
    }

    @Test("A token is renewed after four fifths of its time, unless it lives for more than a day")
    func whenATokenIsRenewed() {
        func wait(_ expiry: Duration?) -> Duration? {
            var token = LoginCredential(form: .token, secret: secret("t"))
            token.expiresAt = expiry
            return token.renewalWait(sinceEpoch: .seconds(1000))
        }
        #expect(wait(.seconds(1100)) == .seconds(80))
        #expect(wait(nil) == nil && wait(.seconds(1000 + 24 * 3600)) == nil)
    }
}
