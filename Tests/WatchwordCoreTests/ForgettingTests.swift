import Testing
import WatchwordProtocol

@testable import WatchwordCore

@Suite struct ForgetLogTests {
    private static let space = ProtectionSpace(
        scheme: "https", host: "h", port: 443, realm: "r", authenticationMethod: .httpBasic)

    private func isCurrent(_ user: ExactText? = nil, after scope: ForgetLog.Scope) -> Bool {
        var log = ForgetLog()
        let mark = log.mark
        log.record(scope)
        #expect(log.isCurrent(log.mark, for: Self.space), "a login that began afterwards is not affected")
        return log.isCurrent(mark, for: Self.space, user: user)
    }

    @Test func onlyForgottenCredentialsAreOutdated() throws {
        #expect(!isCurrent(after: .everything))
        #expect(!isCurrent(after: .address(try SiteAddress("https://h/x"))))
        #expect(isCurrent(after: .address(try SiteAddress("https://h:444/x"))))
        #expect(!isCurrent(after: .credentials(SpacePattern(scheme: "https", host: "h", port: 443), user: nil)))
        #expect(
            isCurrent(after: .credentials(SpacePattern(scheme: "https", host: "h", port: 443, realm: "R"), user: nil)))
        #expect(!isCurrent("bob", after: .credentials(SpacePattern(Self.space), user: "bob")))
        #expect(isCurrent("eve", after: .credentials(SpacePattern(Self.space), user: "bob")))
    }

    @Test func marksOlderThanTheForgetLogAreOutdated() {
        var log = ForgetLog()
        let mark = log.mark
        for _ in 0..<64 { log.record(.credentials(SpacePattern(scheme: "http", host: "x", port: 80), user: nil)) }
        #expect(log.isCurrent(mark, for: Self.space))
        log.record(.credentials(SpacePattern(scheme: "http", host: "x", port: 80), user: nil))
        #expect(!log.isCurrent(mark, for: Self.space))
    }
}

/// Credentials that a user removes while a login is under way.
@Suite struct ForgettingTests {
    enum Forgetting: CaseIterable {
        case session, origin, pattern, lock
    }

    private func forget(_ kind: Forgetting, _ run: inout TableRun, _ url: String = "https://h/") throws {
        let origin = try FetchURL(url).origin
        switch kind {
        case .session: run.take(run.table.clearSession().orders)
        case .origin: run.take(run.table.clearSession(at: try SiteAddress(origin.text)).orders)
        case .pattern:
            let pattern = SpacePattern(scheme: origin.scheme.rawValue, host: origin.host, port: origin.port)
            run.take(run.table.forget(number: nil, pattern: pattern, of: ClientTag(value: 1)).orders)
        case .lock:
            run.take(run.table.lock())
            run.table.unlock()
        }
    }

    @Test(
        "Rule 19: proxies are cleared by their address, and what matches nothing is counted",
        arguments: [
            ("http://p:3128", "http://p:3128", 1), ("http://p:3128/", "http://p:3128", 1),
            ("http://p:3128", "http://p", 0),
            ("http://p:3128", "https://p:3128", 0), ("http://p:3128", "socks5h://p:3128", 0),
            ("https://p:3128", "https://p:3128", 1), ("socks5h://p:1080", "socks5://p", 1),
            ("socks5h://p:1080", "SOCKS5H://p:1080/x", 1), ("socks5h://p:1080", "http://p:1080", 0),
        ])
    func proxiesAreClearedByTheirAddress(proxy: String, address: String, count: Int) throws {
        let endpoint = try ProxyEndpoint(proxy)
        var run = TableRun(proxy: endpoint)
        let fetch = try run.fetch("https://h/")
        if endpoint.type == .socks {
            run.fail(fetch, TransferFailure(.cannotConnect, "detail", cause: .proxyLoginRefused))
        } else {
            run.challengeFromProxy(fetch)
        }
        run.answer(fetch, user: "out", "pw")
        run.respond(fetch, 200)
        #expect(run.table.context.session.count == 1)
        let cleared = run.table.clearSession(at: try SiteAddress(address))
        run.take(cleared.orders)
        #expect(!run.closed.isEmpty, "the tunnel with the login is closed")
        #expect(cleared.count == count && run.table.context.session.count == 1 - count)
        #expect(throws: FetchFailure.self) { try SiteAddress("ftp://p") }
        #expect(throws: FetchFailure.self) { try SiteAddress("socks9://p") }
    }

    @Test(arguments: Forgetting.allCases)
    func aLoginThatWasUnderWayIsNotRemembered(kind: Forgetting) throws {
        var run = TableRun(isKeyringEnabled: true)
        let id = try run.fetch("https://h/a/")
        run.challenge(id)
        run.found(id, [])
        run.answer(id, user: "bob", "pw", .permanent)
        try forget(kind, &run)
        run.respond(id, 200)
        #expect(run.results[id]?.response.status == 200)
        #expect(run.table.sessionCount == 0)
        #expect(!run.effects.contains { if case .store = $0 { true } else { false } })
    }

    @Test(arguments: Forgetting.allCases)
    func aQuestionThatWasOpenIsNotRemembered(kind: Forgetting) throws {
        var run = TableRun()
        let id = try run.fetch("https://h/a/")
        run.challenge(id)
        try forget(kind, &run)
        run.answer(id, user: "bob", "pw")
        run.respond(id, 200)
        #expect(run.table.sessionCount == 0)
        // The next login is remembered: nothing was forgotten since then.
        let next = try run.fetch("https://h/a/")
        run.challenge(next)
        run.answer(next, user: "bob", "pw")
        run.respond(next, 200)
        #expect(run.table.sessionCount == 1)
    }

    @Test(arguments: Forgetting.allCases)
    func aPreemptiveLoginDoesNotRestoreAForgottenCredential(kind: Forgetting) throws {
        var run = TableRun()
        let first = try run.fetch("https://h/a/")
        run.challenge(first, "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"")
        run.answer(first, user: "bob", "pw")
        run.respond(first, 200)
        let second = try run.fetch("https://h/a/")
        #expect(run.last(second)?.authorization != nil)
        try forget(kind, &run)
        run.respond(second, 200, ("Authentication-Info", "nextnonce=\"m\""))
        #expect(run.table.sessionCount == 0)
        let third = try run.fetch("https://h/a/")
        #expect(run.last(third)?.authorization == nil)
    }

    @Test(arguments: Forgetting.allCases)
    func waitingFetchesAreNotServedWithAForgottenCredential(kind: Forgetting) throws {
        var run = TableRun()
        let ids = try (1...3).map { try run.fetch("https://h/a/", client: $0) }
        for id in ids { run.challenge(id) }
        run.answer(ids[0], user: "bob", "pw")
        try forget(kind, &run)
        run.respond(ids[0], 200)
        #expect(run.asking == [ids[1]])
        #expect(run.sent == [basic("bob", "pw")])
        run.answer(ids[1], user: "bob", "pw")
        run.serve(password: "pw")
        #expect(run.results.count == 3)
        #expect(run.table.sessionCount == 1)
    }

    @Test func sessionEntriesOlderThanTheGivenTimeStay() throws {
        var run = TableRun()
        for (host, time) in [("old", 10), ("new", 20)] {
            run.now = .seconds(time)
            let fetch = try run.fetch("https://\(host)/")
            run.challenge(fetch)
            run.answer(fetch, user: "bob", "pw")
            run.respond(fetch, 200)
        }
        #expect(run.table.clearSession(since: .seconds(21)).count == 0)
        #expect(run.table.clearSession(since: .seconds(20)).count == 1)
        #expect(run.table.sessionCredentials(of: ClientTag(value: 1), now: run.now).map(\.pattern.host) == ["old"])
        #expect(run.table.clearSession(since: .seconds(-100)).count == 1)
    }

    @Test func aFetchThatWaitsForAVerdictDoesNotSendAForgottenCredential() throws {
        for preemptive in [true, false] {
            var run = TableRun()
            let first = try run.fetch("https://h/a/")
            run.challenge(first)
            run.answer(first, user: "bob", "pw")
            run.respond(first, 200)
            run.now = Limits.acceptanceAge
            let preemption = preemptive ? Preemption.session : .never
            let ids = try (1...3).map { try run.fetch("https://h/a/", client: $0) { $0.preemption = preemption } }
            if !preemptive { for id in ids { run.challenge(id) } }
            #expect(run.transferring == [ids[0]])
            let before = run.sent.count
            run.take(run.table.clearSession().orders)
            run.respond(ids[0], 200)
            for id in run.transferring { run.challenge(id) }
            #expect(run.sent.count == before)
            #expect(run.asking.count == 1)
            #expect(run.table.sessionCount == 0)
        }
    }

    /// An answer does not restore a credential that was forgotten while its question was open.
    @Test(arguments: [false, true])
    func aProposedCredentialThatWasForgottenIsNotSent(isStored: Bool) throws {
        var run = TableRun()
        let first = try run.fetch("https://h/a/")
        run.challenge(first)
        run.answer(first, user: "bob", "pw")
        run.respond(first, 200)
        let given = LoginCredential(user: "alice", password: secret("pw"))
        let pattern = SpacePattern(scheme: "https", host: "h", port: 443)
        _ = run.table.give(given, for: pattern, of: ClientTag(value: 1), now: run.now)
        let asked = try run.fetch("https://h/a/", subscription: Subscription(delivery: .request, mode: .everything)) {
            $0.preemption = .never
        }
        run.challenge(asked)
        let known = try #require(run.question(asked)?.knownUsers.first)
        let before = run.sent.count
        run.take(run.table.clearSession().orders)
        for _ in 0..<2 { run.answer(asked, .credential(isStored ? .stored(known.id) : .proposed)) }
        #expect(run.sent.count == before && run.asking == [asked])
        #expect(run.table.sessionCount == 0)
    }

    /// SEMANTICS rule 18: the newer password stays, though the older one is accepted after it was stored.
    @Test func anOlderPasswordThatIsUnderWayIsNotRestored() throws {
        var run = TableRun()
        let first = try run.fetch("https://h/a/")
        run.challenge(first)
        run.answer(first, user: "bob", "old")
        let newer = LoginCredential(user: "bob", password: secret("new"))
        let pattern = SpacePattern(scheme: "https", host: "h", port: 443)
        _ = run.table.give(newer, for: pattern, of: ClientTag(value: 1), now: run.now)
        run.respond(first, 200)
        let second = try run.fetch("https://h/a/")
        run.challenge(second)
        #expect(run.sent.last == basic("bob", "new"))
    }

    @Test func anItemThatWasForgottenIsLookedUpAgain() throws {
        var run = TableRun(isKeyringEnabled: true)
        let asked = try run.fetch(subscription: Subscription(delivery: .request, mode: .everything))
        run.challenge(asked)
        run.found(asked, [item("1", exact("bob"), "pw")])
        #expect(run.question(asked)?.proposedCredential?.source == .keyring)
        run.table.recordForgotten(nil)
        run.answer(asked, .useDefault)
        #expect(run.isLookingUp(asked))
        run.found(asked, [])
        #expect(run.sent.isEmpty)
    }

    @Test(arguments: [Forgetting.session, .origin, .lock])
    func anExceptionThatWasUnderWayIsNotRemembered(kind: Forgetting) throws {
        var run = TableRun()
        let ids = try (1...2).map { try run.fetch("https://h/", client: $0, subscription: pinning) }
        for id in ids { run.fail(id, .untrusted(1)) }
        try forget(kind, &run)
        run.answer(ids[0], trust(1, .permanent))
        #expect(run.asking == [ids[1]])
        run.respond(ids[0], 200)
        #expect(run.kept.isEmpty)
        let next = try run.fetch("https://h/")
        #expect(run.last(next)?.trustedKey == nil)
    }

    @Test(arguments: [Forgetting.session, .origin, .lock])
    func aCertificateThatWasUnderWayIsNotRemembered(kind: Forgetting) throws {
        var run = TableRun()
        let id = try run.fetch("https://h/", subscription: pinning)
        run.fail(id, .certificate(.clientCertificateRequired))
        run.answer(id, .credential(.certificate(certificate("a", .forSession))))
        try forget(kind, &run)
        run.respond(id, 200)
        let next = try run.fetch("https://h/", subscription: pinning)
        #expect(run.last(next)?.shownCertificate == nil)
    }
}
