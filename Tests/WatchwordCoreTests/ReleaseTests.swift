import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// `credential/get`: the credential that matches, and the programs to which it may be released.
@Suite struct ReleaseTests {
    private func pattern(
        _ scheme: String = "https", realm: ExactText? = nil, _ method: AuthenticationMethod? = nil
    ) -> SpacePattern {
        SpacePattern(
            scheme: scheme, host: "h", port: scheme == "https" ? 443 : 80, realm: realm, authenticationMethod: method)
    }

    private func get(_ pattern: SpacePattern, user: ExactText? = nil, path: ExactText = "/") -> CredentialGet {
        CredentialGet(pattern: pattern, account: user.map { Account(user: $0) }, path: path)
    }

    @Test func aRuleIsForOneProgramAndItsHosts() throws {
        let rule = ReleaseRule(
            program: "/usr/bin/git-helper", hosts: [try HostPattern("*.example"), try HostPattern("h:443")])
        #expect(rule.covers("/usr/bin/git-helper", pattern()))
        #expect(!rule.covers("/usr/bin/git-helper", pattern("http")), "another port")
        #expect(!rule.covers("/usr/bin/git-helper2", pattern()) && !rule.covers("git-helper", pattern()))
        let other = SpacePattern(scheme: "https", host: "h.other", port: 443)
        #expect(!rule.covers("/usr/bin/git-helper", other))
    }

    @Test func theSessionReleasesTheBestMatch() throws {
        var run = TableRun()
        for (path, realm, password) in [("/a/page", "r", "one"), ("/b/page", "s", "two")] {
            let fetch = try run.fetch("http://h\(path)") { $0.preemption = .never }
            run.challenge(fetch, "Basic realm=\"\(realm)\"")
            run.answer(fetch, user: "bob", password)
            run.respond(fetch, 200)
        }
        let client = ClientTag(value: 9)
        func found(_ params: CredentialGet) -> LoginCredential? {
            run.table.sessionCredential(for: params, of: client, now: run.now)
        }
        #expect(found(get(pattern("http"), path: "/b/x"))?.isSame(as: login("bob", "two")) == true)
        #expect(found(get(pattern("http"), path: "/a/x"))?.isSame(as: login("bob", "one")) == true)
        #expect(found(get(pattern("http", realm: "s")))?.isSame(as: login("bob", "two")) == true)
        #expect(found(get(pattern("http", realm: "t"))) == nil && found(get(pattern("http"), user: "amy")) == nil)
        #expect(found(get(pattern("http", .httpDigest))) == nil && found(get(pattern("http", .bearer))) == nil)
        #expect(found(get(pattern("https"))) == nil)
    }

    @Test(arguments: [("http", false), ("https", true)])
    func aDigestCredentialOfPlainHTTPIsNotReleased(scheme: String, isGiven: Bool) throws {
        var run = TableRun()
        let fetch = try run.fetch("\(scheme)://h/a/page")
        run.challenge(fetch, "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256")
        run.answer(fetch, user: "bob", "pw")
        run.respond(fetch, 200)
        let found = run.table.sessionCredential(for: get(pattern(scheme)), of: ClientTag(value: 1), now: run.now)
        #expect((found != nil) == isGiven)
    }

    @Test func credentialsOfAnotherPartitionAreNotReleased() throws {
        var run = TableRun(sharing: .client)
        let fetch = try run.fetch("http://h/a/page")
        run.challenge(fetch)
        run.answer(fetch, user: "bob", "pw")
        run.respond(fetch, 200)
        let params = get(pattern("http"), path: "/a/page")
        #expect(run.table.sessionCredential(for: params, of: ClientTag(value: 2), now: run.now) == nil)
        #expect(run.table.sessionCredential(for: params, of: ClientTag(value: 1), now: run.now) != nil)
    }

    @Test func credentialsOfSandboxedProgramsAreNotReleased() throws {
        var run = TableRun()
        let fetch = try run.fetch("http://h/a/page", subject: Subject(.flatpak, "org.example.Maps", isSandboxed: true))
        run.challenge(fetch)
        run.answer(fetch, user: "bob", "pw")
        run.respond(fetch, 200)
        #expect(run.table.sessionCredential(for: get(pattern("http")), of: ClientTag(value: 2), now: run.now) == nil)
    }

    @Test func anAmbiguousKeyringMatchIsNotReleased() {
        let table = TableRun(isKeyringEnabled: true).table
        let attributes = { (user: ExactText, realm: ExactText?) -> [ExactText: ExactText] in
            var attributes: [ExactText: ExactText] = ["user": user, "server": "h", "protocol": "https", "port": "443"]
            attributes["domain"] = realm
            return attributes
        }
        let items = [item("1", attributes("bob", "r"), "one"), item("2", attributes("amy", "s"), "two")]
        #expect(table.keyringCredential(for: get(pattern()), among: items) == nil)
        #expect(table.keyringCredential(for: get(pattern(), user: "amy"), among: items)?.user == "amy")
        #expect(table.keyringCredential(for: get(pattern(realm: "r")), among: items)?.user == "bob")
        #expect(table.keyringCredential(for: get(pattern("http"), user: "amy"), among: items) == nil)
        let same = [item("1", attributes("bob", "r"), "one"), item("3", attributes("bob", "s"), "one")]
        #expect(table.keyringCredential(for: get(pattern()), among: same)?.user == "bob")
    }

    @Test func patternsThatCanMeanTheSameOverlap() {
        let (all, realm, digest) = (pattern(), pattern(realm: "r"), pattern("https", .httpDigest))
        #expect(all.overlaps(realm) && realm.overlaps(all) && realm.overlaps(digest) && digest.overlaps(realm))
        #expect(!realm.overlaps(pattern(realm: "s")) && !digest.overlaps(pattern("https", .httpBasic)))
        #expect(!all.overlaps(pattern("http")))
    }
}
