import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Path and expiry of a credential: SEMANTICS rule 18.
@Suite struct WholeCredentialTests {
    private let pattern = SpacePattern(scheme: "http", host: "h", port: 80)
    private let client = ClientTag(value: 1)

    private func whole(
        _ user: ExactText, path: ExactText? = nil, expiresAt: Duration? = nil, _ password: String = "pw"
    ) -> LoginCredential {
        var credential = login(user, password)
        credential.path = path
        credential.expiresAt = expiresAt
        return credential
    }

    private func sent(_ run: inout TableRun, _ url: String, _ items: [KeyringItem] = []) throws -> String? {
        let before = run.sent.count
        let fetch = try run.fetch(url)
        if run.request(fetch)?.authorization == nil { run.challenge(fetch) }
        if run.isLookingUp(fetch) { run.found(fetch, items) }
        if run.request(fetch) != nil { run.respond(fetch, 200) } else { run.abort(fetch) }
        return run.sent.count > before ? run.sent.last : nil
    }

    // MARK: Paths

    @Test("Rule 18: a credential with a narrower path comes first")
    func eachPathHasItsOwnAccount() throws {
        var run = TableRun()
        for (user, path) in [("any", nil), ("one", "/one"), ("deep", "/one/deep")] as [(ExactText, ExactText?)] {
            _ = run.table.give(whole(user, path: path), for: pattern, of: client, now: .zero)
        }
        for _ in 1...2 {
            #expect(try sent(&run, "http://h/one/x") == basic("one", "pw"))
            #expect(try sent(&run, "http://h/one/deep/x") == basic("deep", "pw"))
            #expect(try sent(&run, "http://h/onex") == basic("any", "pw"))
        }
        #expect(run.table.sessionCredentials(of: client, now: .zero).map(\.isDefault) == [true, true, true])
    }

    @Test func aPathIsNotNarrowerBecauseOfItsForm() throws {
        var run = TableRun()
        for (user, path) in [("long", "/%61%61%61%61"), ("narrow", "/aaaa/x")] as [(ExactText, ExactText)] {
            _ = run.table.give(whole(user, path: path), for: pattern, of: client, now: .zero)
        }
        for _ in 1...2 {
            #expect(try sent(&run, "http://h/aaaa/x/y") == basic("narrow", "pw"))
            #expect(try sent(&run, "http://h/aaaa/y") == basic("long", "pw"))
        }
    }

    private static let users: [(ExactText, ExactText?)] = [("any", nil), ("outer", "/v1"), ("inner", "/v1/inner")]

    /// Neither after a challenge, nor before one, when all logins were accepted, wherever each is stored.
    @Test("Rule 18: a path that may be that of a narrower login is asked about", arguments: 0..<8)
    func aPathThatMayBeThatOfANarrowerLoginIsAskedAbout(places: Int) throws {
        var run = TableRun(isKeyringEnabled: true)
        var items: [KeyringItem] = []
        for (index, (user, path)) in Self.users.enumerated() {
            if places >> index & 1 == 0 {
                _ = run.table.give(whole(user, path: path), for: pattern, of: client, now: .zero)
            } else {
                var attributes = exact(user)
                attributes["object"] = path
                items.append(item(user.string, attributes, "pw"))
            }
        }
        for _ in 1...2 {
            for path in [
                "/v1/%25%36%39nner/x", "/v1//inner/x", "/v1/inner;a/x", "/v1%2Finner/x", "/x/..%2Fv1/inner/x",
                "/v1/..;/v1/inner/x", "/v1/%2e%252e/v1/inner/x",
            ] {
                #expect(try sent(&run, "http://h\(path)", items) == nil, "\(path)")
            }
            #expect(try sent(&run, "http://h/x", items) == basic("any", "pw"))
            #expect(try sent(&run, "http://h/v1/x", items) == basic("outer", "pw"))
            #expect(try sent(&run, "http://h/v1/%69nner/x", items) == basic("inner", "pw"))
        }
    }

    @Test(arguments: [CredentialSource.session, .keyring])
    func aNetrcEntryIsNotUsedAtAPathThatMayBeThatOfALogin(place: CredentialSource) throws {
        var run = TableRun(isKeyringEnabled: true)
        run.usesNetrc = true
        let secure = SpacePattern(scheme: "https", host: "h", port: 443)
        if place == .session {
            _ = run.table.give(whole("inner", path: "/v1/inner"), for: secure, of: client, now: .zero)
        }
        let inner = KeyringAttributes.attributes(for: secure, Account(user: "inner"), path: "/v1/inner")
        let items = place == .keyring ? [item("1", inner, "pw")] : []
        for (path, isUsed) in [("/v1//inner/x", false), ("/v1/x", true)] {
            let fetch = try run.fetch("https://h\(path)")
            run.challenge(fetch)
            run.found(fetch, items)
            run.foundInNetrc(fetch, [Netrc.Login(machine: "h", user: "any", password: secret("pw"))])
            #expect(run.sent.count == (isUsed ? 1 : 0), "\(path)")
            run.abort(fetch)
        }
    }

    @Test func aFetchThatNamesTheUserOfAWiderLoginGetsIt() throws {
        var run = TableRun()
        for (user, path) in Self.users {
            _ = run.table.give(whole(user, path: path), for: pattern, of: client, now: .zero)
        }
        #expect(try sent(&run, "http://any@h/v1//inner/x") == basic("any", "pw"))
    }

    @Test func aFetchThatWaitedDoesNotFollowToAPathThatMayBeThatOfANarrowerLogin() throws {
        var run = TableRun()
        for (user, path) in Self.users {
            _ = run.table.give(whole(user, path: path), for: pattern, of: client, now: .zero)
        }
        let (one, two) = (try run.fetch("http://h/x"), try run.fetch("http://h/v1//inner/x"))
        for id in [one, two] { run.challenge(id) }
        // A fetch that has waited for a verdict for some time sends the same login.
        run.now += Limits.verdictWait
        run.tick()
        #expect(run.sent == [basic("any", "pw")] && run.asking.isEmpty)
        run.respond(one, 200)
        #expect(run.sent == [basic("any", "pw")] && run.asking == [two])
    }

    @Test func aPasswordForAPathReplacesOneForThisPathInAnotherForm() throws {
        var run = TableRun()
        for (path, password) in [("/one", "old"), ("/%6Fne", "new")] as [(ExactText, String)] {
            _ = run.table.give(whole("bob", path: path, password), for: pattern, of: client, now: .zero)
        }
        #expect(try sent(&run, "http://h/one/x") == basic("bob", "new"))
        #expect(run.table.sessionCredentials(of: client, now: .zero).count == 1)
    }

    @Test func aCredentialForOnePathIsNotProposedElsewhere() throws {
        var run = TableRun()
        _ = run.table.give(whole("one", path: "/one"), for: pattern, of: client, now: .zero)
        #expect(try sent(&run, "http://h/one/x") == basic("one", "pw"))
        #expect(try sent(&run, "http://h/two/x") == nil)
        #expect(run.challenges.last?.challenge.proposedCredential == nil)
    }

    @Test(arguments: [Persistence.none, .forSession])
    func aFetchThatWaitedDoesNotFollowIntoAnotherPath(_ persistence: Persistence) throws {
        var run = TableRun()
        let (one, two) = (try run.fetch("http://h/one/x"), try run.fetch("http://h/two/x"))
        for id in [one, two] { run.challenge(id) }
        var credential = whole("one", path: "/one")
        credential.persistence = persistence
        run.answer(one, .credential(.login(credential)))
        run.respond(one, 200)
        #expect(run.sent == [basic("one", "pw")])
        #expect(run.asking == [two])
    }

    @Test func anItemForAPathPrecedesASessionCredentialForTheServer() throws {
        var run = TableRun(isKeyringEnabled: true)
        var narrow = exact("one")
        narrow["object"] = "one"
        let items = [item("1", exact("any"), "pw"), item("2", narrow, "pw")]
        for (url, user) in [
            ("http://h/x", "any"), ("http://h/one/x", "one"), ("http://h/y", "any"), ("http://h/one/y", "one"),
            ("http://h/%6Fne/z", "one"), ("http://h/%6Fnex", "any"),
        ] as [(String, ExactText)] {
            let fetch = try run.fetch(url)
            if run.request(fetch)?.authorization == nil { run.challenge(fetch) }
            if run.isLookingUp(fetch) { run.found(fetch, items) }
            #expect(run.sent.last == basic(user, "pw"), "\(url)")
            run.respond(fetch, 200)
        }
    }

    /// A narrower item that is not for this fetch does not cause a question about the session's credential.
    @Test(arguments: ["other user", "other realm"])
    func anUnusableNarrowerItemDoesNotHideTheSession(_ reason: String) throws {
        var run = TableRun(isKeyringEnabled: true)
        var narrow = exact(reason == "other user" ? "one" : "any")
        narrow["object"] = "one"
        if reason == "other realm" { narrow["domain"] = "another" }
        let items = [item("2", narrow, "pw")]
        let first = try run.fetch("http://any@h/one/x")
        run.challenge(first)
        run.found(first, items)
        run.answer(first, user: "any", "typed")
        run.respond(first, 200)
        // The lookup of another fetch records the item again.
        let other = try run.fetch("http://eve@h/one/y")
        run.challenge(other)
        if run.isLookingUp(other) { run.found(other, items) }
        run.abort(other)
        let second = try run.fetch("http://any@h/one/z")
        if run.request(second)?.authorization == nil { run.challenge(second) }
        #expect(run.sent == [basic("any", "typed"), basic("any", "typed")])
        #expect(run.question(second) == nil && !run.isLookingUp(second))
    }

    @Test func anAnswerIsNotAskedForAgainWhereTheKeyringHasSeveralForThePath() throws {
        var run = TableRun(isKeyringEnabled: true)
        let items = ["one", "two"].map { (user: ExactText) in
            var narrow = exact(user)
            narrow["object"] = "one"
            return item(user.string, narrow, "pw")
        }
        let first = try run.fetch("http://h/one/x")
        run.challenge(first)
        run.found(first, items)
        run.answer(first, user: "three", "typed")
        run.respond(first, 200)
        let second = try run.fetch("http://h/one/y")
        if run.request(second)?.authorization == nil { run.challenge(second) }
        #expect(run.sent == [basic("three", "typed"), basic("three", "typed")])
    }

    @Test func anAnswerForAnotherPathIsNotSent() throws {
        var run = TableRun()
        let fetch = try run.fetch("http://h/one/x")
        run.challenge(fetch)
        run.answer(fetch, .credential(.login(whole("two", path: "/two"))))
        #expect(run.sent.isEmpty && run.question(fetch)?.error == .credentialForOtherPath)
    }

    @Test func theKeyringHasOneItemForEachPath() throws {
        let accounts: [(ExactText, ExactText?)] = [("any", nil), ("one", "/one"), ("two", "/two")]
        let items = accounts.map { user, path in
            item(
                user.string,
                KeyringAttributes.attributes(
                    for: SpacePattern(here.space(realm: "r", .httpBasic)), Account(user: user), path: path),
                "pw")
        }
        for (path, user) in [("/one/x", "one"), ("/two/", "two"), ("/three", "any")] as [(ExactText, ExactText)] {
            let finding = KeyringMatch(
                items, for: here.space(realm: "r", .httpBasic), at: here, path: path, user: nil)
            guard case .credential(let found, _, true) = finding else {
                Issue.record("\(finding)")
                continue
            }
            #expect(found.user == user)
        }
    }

    // MARK: Expiry

    @Test func expiredCredentialsLeaveTheSession() throws {
        var run = TableRun()
        let fetch = try run.fetch()
        run.challenge(fetch)
        run.answer(fetch, .credential(.login(whole("bob", expiresAt: .seconds(60)))))
        run.respond(fetch, 200)
        run.now = .seconds(59)
        #expect(try sent(&run, "http://h/a/x") == basic("bob", "pw"))
        run.now = .seconds(60)
        #expect(try sent(&run, "http://h/a/x") == nil)
        run.tick()
        #expect(run.table.sessionCount == 0)
    }

    @Test func anExpiredCredentialIsNeverSent() throws {
        var run = TableRun(isKeyringEnabled: true)
        run.now = .seconds(100)
        _ = run.table.give(whole("given", expiresAt: .seconds(100)), for: pattern, of: client, now: run.now)
        let own = whole("own", expiresAt: .seconds(99))
        let fetch = try run.fetch { $0.credential = own }
        run.challenge(fetch)
        run.found(fetch, [item("1", exact("own"), "pw\npassword_expiry_utc=100")])
        #expect(run.sent.isEmpty)
        run.answer(fetch, .credential(.login(whole("bob", expiresAt: .seconds(100)))))
        #expect(run.sent.isEmpty && run.question(fetch)?.error == .credentialExpired)
        run.answer(fetch, .credential(.login(whole("bob", expiresAt: .seconds(101)))))
        #expect(run.sent == [basic("bob", "pw")])
    }

    @Test func anItemThatExpiresIsRemovedOnlyWhole() throws {
        var run = try MachineRun(keyring: [
            item("1", exact("bob"), "pw\npassword_expiry_utc=100\noauth_refresh_token=r")
        ])
        run.start()
        run.challengeBasic()
        #expect(run.authorizations.last == basic("bob", "pw"))
        run.challengeBasic()
        let removed = run.effects.compactMap { effect -> LoginCredential? in
            if case .remove(_, let credential) = effect { credential } else { nil }
        }
        #expect(
            removed.map { KeyringSecret.text(of: $0).revealed } == [
                "pw\npassword_expiry_utc=100\noauth_refresh_token=r"
            ])
    }
}
