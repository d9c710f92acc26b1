import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The keyring's items for a space: how exactly they match, and how they are used.
@Suite struct KeyringMatchTests {
    private let space = ProtectionSpace(
        scheme: "https", host: "h.example", port: 8443, realm: "Staff", authenticationMethod: .httpBasic)
    private let exactly: [ExactText: ExactText] = [
        "user": "bob", "server": "h.example", "protocol": "https", "port": "8443", "domain": "Staff",
        "authtype": "basic",
    ]

    private func find(
        _ items: [[ExactText: ExactText]], user: Account? = nil, url: String = "https://h.example:8443/a/b",
        space: ProtectionSpace? = nil
    ) throws -> String? {
        let items = items.enumerated().map { item("\($0.offset)", $0.element, "secret\($0.offset)") }
        let finding = KeyringMatch(items, for: space ?? self.space, at: try FetchURL(url), user: user)
        guard case .credential(let credential, let id, let isExact) = finding else { return "\(finding)" }
        return "\(credential.user) \(id.dropFirst(7))\(isExact ? " exact" : "")"
    }

    private func without(_ names: ExactText...) -> [ExactText: ExactText] { exactly.filter { !names.contains($0.key) } }

    private func with(_ changes: [ExactText: ExactText]) -> [ExactText: ExactText] { exactly.merging(changes) { $1 } }

    @Test func anItemOfExactlyThisSpaceIsFound() throws {
        #expect(try find([exactly]) == "bob 0 exact")
        #expect(try find([with(["watchword-default": "1", "xdg:schema": "x"])]) == "bob 0 exact")
    }

    /// The realm of an item is what people read.
    @Test func anItemIsFoundForARealmInISO88591() throws {
        var space = space
        space.realm = ExactText(received(latin1: "B\u{FC}ro"))
        #expect(try find([with(["domain": "Büro"])], space: space) == "bob 0 exact")
        #expect(try find([with(["domain": "Buro"])], space: space) == "none")
        let stored = KeyringAttributes.attributes(for: SpacePattern(space), Account(user: "bob"))
        #expect(stored["domain"] == "Büro")
    }

    @Test func nothingOfAnotherSiteIsFound() throws {
        for other in [
            ["server": "other.example"], ["server": "x.h.example"], ["protocol": "http"], ["protocol": "ftp"],
            ["port": "443"], ["port": "84430"], ["domain": "staff"], ["domain": "Other"], ["authtype": "digest"],
            ["authtype": "strange"], ["object": "/elsewhere"], ["user": ""],
        ] as [[ExactText: ExactText]] {
            #expect(try find([with(other)]) == "none", "\(other)")
        }
        #expect(try find([without("port")]) == "none")
        #expect(try find([without("user")]) == "none")
    }

    @Test func aPathAppliesToThePathsBelowIt() throws {
        for (path, requested, isFound) in [
            ("/a", "/a/b", true), ("/a/", "/a/b", true), ("/a", "/a", true), ("/a", "/ab", false),
            ("/a/b", "/a", false),
            ("/a", "/A/b", false),
        ] as [(ExactText, String, Bool)] {
            let found = try find([with(["object": path])], url: "https://h.example:8443\(requested)")
            #expect((found == "none") == !isFound, "\(path) for \(requested): \(found ?? "nothing")")
        }
    }

    @Test func aProxyGetsOnlyItsOwnItems() throws {
        let proxy = ProtectionSpace(
            scheme: "http", host: "h.example", port: 8443, realm: "Staff", authenticationMethod: .httpBasic,
            proxyType: .http)
        func isFound(_ attributes: [ExactText: ExactText]) -> Bool {
            let items = [item("0", attributes, "secret")]
            return KeyringMatch(items, for: proxy, at: Challenger(proxy), path: "/", user: nil) != .none
        }
        #expect(isFound(with(["protocol": "http-proxy"])))
        for name in ["http", "https", "https-proxy", "socks", ""] as [ExactText] {
            #expect(!isFound(with(["protocol": name])), "\(name)")
        }
        #expect(!isFound(without("protocol")))
        #expect(try find([with(["protocol": "http-proxy"])]) == "none", "a server does not match either")
    }

    @Test func absentAttributesHaveTheirDefaults() throws {
        let usual = ProtectionSpace(
            scheme: "https", host: "h.example", port: 443, realm: "Staff", authenticationMethod: .httpBasic)
        let url = "https://h.example/"
        for item in [
            ["user": "bob", "server": "h.example", "protocol": "https"], ["user": "bob", "server": "H.Example"],
            ["username": "bob", "service": "h.example"], ["username": "bob", "service": "https://h.example"],
            ["username": "bob", "service": "https://h.example/"],
            ["username": "bob", "service": "https://H.example:443"],
            ["username": "bob", "service": "h.example:443"],
            ["user": "bob", "server": "h.example", "port": "0", "domain": "", "authtype": "", "object": ""],
        ] as [[ExactText: ExactText]] {
            #expect(try find([item], url: url, space: usual) == "bob 0", "\(item)")
        }
        for item in [
            ["username": "bob", "service": "http://h.example"], ["username": "bob", "service": "example"],
            ["username": "bob", "service": "h.example:8443"], ["user": "bob", "server": "h.example", "port": "80"],
        ] as [[ExactText: ExactText]] {
            #expect(try find([item], url: url, space: usual) == "none", "\(item)")
        }
    }

    @Test("Rules 25 and B7: an item that names no scheme is not sent in the clear")
    func anItemThatNamesNoSchemeIsNotSentInTheClear() throws {
        for (host, isFound) in [("h.example", false), ("localhost", true), ("127.0.0.1", true)] as [(ExactText, Bool)] {
            let plain = ProtectionSpace(
                scheme: "http", host: host, port: 80, realm: "Staff", authenticationMethod: .httpBasic)
            let found = try find([["user": "bob", "server": host]], url: "http://\(host)/", space: plain)
            #expect(found == (isFound ? "bob 0" : "none"))
            let named: [ExactText: ExactText] = ["user": "bob", "server": host, "protocol": "http"]
            #expect(try find([named], url: "http://\(host)/", space: plain) == "bob 0")
        }
    }

    @Test func theMostSpecificItemIsUsed() throws {
        #expect(try find([without("domain"), exactly, without("authtype")]) == "bob 1 exact")
        #expect(try find([without("domain"), without("authtype")]) == "bob 1")
        #expect(try find([without("protocol"), without("authtype")]) == "bob 0")
        let deep = with(["object": "/a"])
        #expect(try find([exactly, deep]) == "bob 1")
    }

    @Test func ambiguousItemsAreNotUsed() throws {
        #expect(try find([exactly, with(["user": "carol"])]) == "undecided")
        #expect(try find([exactly, with(["user": "carol"])], user: "carol") == "carol 1 exact")
        #expect(try find([exactly, exactly]) == "undecided")
        #expect(try find([with(["user": "carol"]), without("domain")]) == "carol 0 exact")
    }

    @Test func twoEqualItemsAreUsedWithoutAQuestion() throws {
        let items = ["a", "b"].map { item($0, exactly, "same") }
        let finding = KeyringMatch(items, for: space, at: try FetchURL("https://h.example:8443/"), user: nil)
        guard case .credential = finding else { return #expect(Bool(false)) }
    }

    @Test("Rule 18: the marked item is the default")
    func theMarkedItemIsTheDefault() throws {
        let marked = with(["user": "carol", "watchword-default": "1"])
        #expect(try find([exactly, marked]) == "carol 1 exact")
        #expect(try find([marked, with(["watchword-default": "1"])]) == "undecided")
    }

    @Test func lockedItemsAreNotUsed() throws {
        let locked = item("1", exactly, nil)
        #expect(KeyringMatch([locked], for: space, at: try FetchURL("https://h.example:8443/"), user: nil) == .none)
    }

    // MARK: Writing

    @Test("Rule 18: the first user is marked as default and later ones are not")
    func theFirstUserIsMarkedAsDefaultAndLaterOnesAreNot() {
        let bob = LoginCredential(user: "bob", password: secret("one"))
        let pattern = SpacePattern(space)
        let first = KeyringWrite(bob, for: pattern, over: [])
        #expect(first.attributes == with(["watchword-default": "1"]))
        #expect(first.unchanged == nil)
        let schema: [ExactText: ExactText] = ["xdg:schema": "org.gnome.keyring.NetworkPassword"]
        let there = item("1", first.attributes.merging(schema) { $1 }, "one")
        #expect(KeyringWrite(bob, for: pattern, over: [there]).unchanged == "/items/1")
        let newer = LoginCredential(user: "bob", password: secret("two"))
        let over = KeyringWrite(newer, for: pattern, over: [there])
        #expect(over.unchanged == nil)
        #expect(over.attributes == first.attributes)
        // An item with another schema belongs to another program: it is not changed, and ours is the default beside it.
        let foreign = item("2", first.attributes.merging(["xdg:schema": "x"]) { $1 }, "one")
        #expect(KeyringWrite(bob, for: pattern, over: [foreign]).unchanged == nil)
        #expect(KeyringWrite(bob, for: pattern, over: [foreign]).attributes["watchword-default"] == "1")
        let carol = LoginCredential(user: "carol", password: secret("one"))
        #expect(KeyringWrite(carol, for: pattern, over: [there]).attributes["watchword-default"] == nil)
    }

    // MARK: In a fetch

    @Test("Rule 17: the keyring is written after the server has accepted")
    func theKeyringIsWrittenAfterTheServerHasAccepted() throws {
        for (status, isStored) in [(200, true), (403, true), (401, false), (503, false)] {
            var run = try MachineRun(keyring: [])
            run.start()
            run.challengeBasic()
            #expect(run.challenges[0].persistenceAllowed == [.none, .forSession, .permanent])
            run.answer(user: "bob", "pw", .permanent)
            #expect(run.effects.isEmpty)
            if status == 401 { run.challengeBasic() } else { run.respond(status) }
            let stores = run.effects.filter { if case .store = $0 { true } else { false } }
            #expect(stores.count == (isStored ? 1 : 0))
        }
    }

    @Test("Rule 17: only an item that matches exactly is removed when it is refused")
    func onlyAnItemThatMatchesExactlyIsRemovedWhenItIsRefused() throws {
        for (attributes, isRemoved) in [(exact("bob"), true), (exact("bob").filter { $0.key != "domain" }, false)] {
            var run = try MachineRun(keyring: [item("1", attributes, "stale")])
            run.start()
            run.challengeBasic()
            run.challengeBasic()
            let removal = FetchEffect.remove(
                item: "/items/1",
                LoginCredential(user: "bob", password: secret("stale"), persistence: .permanent))
            #expect(run.effects.contains(removal) == isRemoved)
        }
    }

    @Test func aRefusedValueIsLeftAloneForAWhile() throws {
        var run = TableRun(isKeyringEnabled: true)
        let stale = item("1", exact("bob").filter { $0.key != "domain" }, "stale")
        for (age, sent) in [(Duration.zero, 1), (.seconds(60), 1), (Limits.sessionLifetime + .seconds(61), 2)] {
            run.now = age
            let fetch = try run.fetch()
            run.challenge(fetch)
            run.found(fetch, [stale])
            if run.request(fetch) != nil { run.challenge(fetch) }
            #expect(run.sent.count == sent)
            run.answer(fetch, .cancel)
        }
    }

    @Test func aKeyringThatCannotBeUsedIsPassedOver() throws {
        for kind in KeyringFailure.Kind.allCases {
            var run = TableRun(isKeyringEnabled: true)
            let fetch = try run.fetch()
            run.challenge(fetch)
            run.found(fetch, failure: kind)
            #expect(run.question(fetch)?.persistenceAllowed == [.none, .forSession])
        }
    }

    @Test func aSilentKeyringIsLeftAloneForAMinute() throws {
        var run = TableRun(isKeyringEnabled: true)
        for (age, isAsked) in [(Duration.zero, true), (.seconds(59), false), (.seconds(60), true)] {
            run.now = age
            let fetch = try run.fetch()
            run.challenge(fetch)
            #expect(run.isLookingUp(fetch) == isAsked)
            if isAsked { run.found(fetch, failure: .timedOut) }
            run.answer(fetch, .cancel)
        }
    }

    @Test func aLockedItemMakesTheKeyringUnusable() throws {
        var run = TableRun(isKeyringEnabled: true)
        let fetch = try run.fetch()
        run.challenge(fetch)
        run.found(fetch, [item("1", exact("bob"), nil)])
        guard case .unusable(let failure, _) = run.table.keyring.state else { return #expect(Bool(false)) }
        #expect(failure.kind == .locked)
        #expect(run.question(fetch)?.persistenceAllowed == [.none, .forSession])
    }

    @Test("Rule 17: a server that repeats stale without end deletes no stored password")
    func aServerThatRepeatsStaleWithoutEndDeletesNoStoredPassword() throws {
        var attributes = exact("bob")
        attributes["authtype"] = "digest"
        var run = try MachineRun(keyring: [item("1", attributes, "pw")])
        run.start()
        run.challengeDigest(nonce: "1")
        for number in 2...4 { run.challengeDigest(nonce: "\(number)", stale: true) }
        #expect(run.challenges.last?.previousFailureCount == 1)
        #expect(!run.effects.contains { if case .remove = $0 { true } else { false } })
    }

    @Test func anItemOfOnePathIsNotUsedAtAnotherAfterARedirect() throws {
        var attributes = exact("bob")
        attributes["object"] = "/a"
        var run = try MachineRun(
            subscription: Subscription(delivery: .request, mode: .everything), keyring: [item("1", attributes, "pw")])
        run.start()
        run.challengeBasic()
        #expect(run.challenges.last?.proposedCredential?.user == "bob")
        run.answer(user: "carol", "other", .none)
        run.respond(302, ("Location", "/b/page"))
        run.challengeBasic()
        #expect(run.challenges.last?.proposedCredential == nil)
        run.answer(.useDefault)
        #expect(!run.authorizations.contains(basic("bob", "pw")))
    }
}
