import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// SECURITY-RULES D19: the strength that a server has accepted applies to all spaces that a stored credential matches.
@Suite struct AcceptedStrengthTests {
    private static let digest = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256"
    private let client = ClientTag(value: 1)

    private func challenge(_ text: String) throws -> AnswerableChallenge {
        let parsed = try #require(ChallengeHeader.parse(fields: [text]).first)
        return try #require(AnswerableChallenge(parsed, at: here, SchemeRules()))
    }

    /// Returns a run in which a keyring item without a realm, as `credential/store` writes it, has logged in by Digest.
    private func loggedIn(_ items: [KeyringItem]) throws -> TableRun {
        var run = TableRun(isKeyringEnabled: true)
        let fetch = try run.fetch("http://h/a")
        run.challenge(fetch, Self.digest)
        run.found(fetch, items)
        #expect(run.sent.count == 1)
        run.respond(fetch, 200)
        return run
    }

    @Test("Rule D19: a challenge in a new realm names the former realm")
    func aChallengeInANewRealmNamesTheFormerOne() throws {
        var run = TableRun()
        for (path, realm) in [("/a/b/c", "r"), ("/x", "s"), ("/a/y", "r")] {
            let fetch = try run.fetch("http://h\(path)") { $0.preemption = .never }
            run.challenge(fetch, "Basic realm=\"\(realm)\"")
            if run.question(fetch) != nil { run.answer(fetch, user: "bob", "pw") }
            run.respond(fetch, 200)
        }
        for (path, realm, former) in [
            ("/a/b/d", "new", "r"), ("/x", "new", "s"), ("/a/b/d", "s", nil), ("/a/b/d", "r", nil),
        ] as [(String, String, ExactText?)] {
            let fetch = try run.fetch("http://h\(path)", client: 2) { $0.useStorage = false }
            run.challenge(fetch, "Basic realm=\"\(realm)\"")
            #expect(run.question(fetch)?.formerRealm == former, "\(path) \(realm)")
            run.answer(fetch, .proceed)
        }
        let elsewhere = try run.fetch("http://i/", client: 2)
        run.challenge(elsewhere)
        #expect(run.question(elsewhere)?.formerRealm == nil)
    }

    @Test("Rule D19: a directory with a stronger scheme is found in whatever form a server may read the path")
    func aDirectoryWithAStrongerSchemeIsFoundInEachForm() throws {
        var strength = AcceptedStrength()
        strength.record(try challenge(Self.digest), at: here, path: "/v1/inner/x")
        let basic = try challenge("Basic realm=\"r\"")
        strength.record(basic, at: here, path: "/v1/x")
        for (path, isDowngrade) in [
            ("/v1/y", false), ("/%761/y", false), ("/v1/inner/y", true), ("/v1/%69nner/y", true),
            ("/v1/%2569nner/y", true), ("/v1//inner/y", true), ("/v1%2Finner/y", true),
        ] as [(ExactText, Bool)] {
            let found = strength.isDowngrade(basic, at: here, path: path, reach: .realm)
            #expect(found == isDowngrade, "\(path)")
        }
        // The stronger scheme takes the place of a weaker one at the same path in another form.
        strength.record(basic, at: here, path: "/v1/%69nner/y")
        #expect(!strength.isDowngrade(basic, at: here, path: "/v1/inner/y", reach: .realm))
        strength.record(try challenge(Self.digest), at: here, path: "/v1/inner/y")
        #expect(strength.isDowngrade(basic, at: here, path: "/v1/%69nner/y", reach: .realm))
    }

    @Test func anItemWithoutARealmIsNotSentInTheClearInAnotherRealm() throws {
        let items = [item("1", ["user": "bob", "server": "h", "protocol": "http", "port": "80"], "pw")]
        var run = try loggedIn(items)
        let later = try run.fetch("http://h/b") { $0.preemption = .never }
        run.challenge(later, "Basic realm=\"X\"")
        run.found(later, items)
        #expect(run.sent.count == 1, "no password is sent in the clear")
        #expect(run.question(later)?.isDowngrade == true)
        #expect(run.question(later)?.proposedCredential == nil)
        run.answer(later, user: "bob", "pw")
        run.respond(later, 200)
        let again = try run.fetch("http://h/b") { $0.preemption = .never }
        run.challenge(again, "Basic realm=\"X\"")
        #expect(run.sent.last == basic("bob", "pw"), "accepted at exactly this path")
    }

    @Test func aPinnedKeyDoesNotHideTheSchemeOfAProxy() throws {
        var run = TableRun()
        run.proxy = ProxyRule(endpoint: ProxyEndpoint(type: .http, host: "q", port: 3128))
        let fetch = try run.fetch("https://h/") {
            $0.tls.pin = TrustCredential(spkiSha256: Hexadecimal.text([UInt8](repeating: 1, count: 32)))
        }
        run.challengeFromProxy(fetch, Self.digest)
        run.answer(fetch, user: "bob", "pw")
        run.respond(fetch, 200)
        let later = try run.fetch("https://h/") { $0.preemption = .never }
        run.challengeFromProxy(later, "Basic realm=\"r\"")
        #expect(run.question(later)?.isDowngrade == true)
    }

    @Test func aServerThatTheFetchChoosesDoesNotMakeAWeakSchemeUsual() throws {
        let items = [item("1", ["user": "bob", "server": "h", "protocol": "http", "port": "80"], "pw")]
        var run = try loggedIn(items)
        let steered = try run.fetch("http://h/b") { $0.proxy = .named(NamedProxy(url: "http://q:3128")) }
        run.challenge(steered, "Basic realm=\"r\"")
        run.answer(steered, user: "bob", "pw")
        run.respond(steered, 200)
        let later = try run.fetch("http://h/b") { $0.preemption = .never }
        run.challenge(later, "Basic realm=\"r\"")
        run.found(later, items)
        #expect(run.sent.count == 2, "one for the item, one for the answer")
        #expect(run.question(later)?.isDowngrade == true)
    }

    @Test func aProvidedCredentialWithoutARealmIsNotSentInTheClear() throws {
        var run = TableRun()
        let typed = try run.fetch("http://h/a")
        run.challenge(typed, Self.digest)
        run.answer(typed, user: "bob", "pw")
        run.respond(typed, 200)
        let pattern = SpacePattern(scheme: "http", host: "h", port: 80)
        _ = run.table.give(login("amy", "stored"), for: pattern, of: client, now: .zero)
        let later = try run.fetch("http://h/b") { $0.preemption = .never }
        run.challenge(later, "Basic realm=\"X\"")
        #expect(run.sent.count == 1)
        #expect(run.question(later)?.isDowngrade == true)
        var exact = pattern
        exact.realm = "Y"
        _ = run.table.give(login("eve", "for Y"), for: exact, of: client, now: .zero)
        let elsewhere = try run.fetch("http://h/c") { $0.preemption = .never }
        run.challenge(elsewhere, "Basic realm=\"Y\"")
        #expect(run.sent.last == basic("eve", "for Y"), "stored for exactly that realm")
    }

    @Test func theStrengthIsRecordedForEachDirectory() throws {
        var accepted = AcceptedStrength()
        let (basic, strong) = (try challenge("Basic realm=\"r\""), try challenge(Self.digest))
        func isDowngrade(_ path: ExactText) -> Bool {
            accepted.isDowngrade(basic, at: here, path: path, reach: .realm)
        }
        accepted.record(basic, at: here, path: "/basic")
        accepted.record(strong, at: here, path: "/digest")
        #expect(!isDowngrade("/basic") && isDowngrade("/digest") && isDowngrade("/other"))
        accepted.record(basic, at: here, path: "/b/one")
        #expect(!isDowngrade("/b/two"), "in its own directory")
        accepted.record(strong, at: here, path: "/b/c/deeper")
        #expect(!isDowngrade("/b/two") && isDowngrade("/b/c/two"))
        #expect(isDowngrade("/b/..%2fdigest") && isDowngrade("/b/..;/c/two"), "the server may find another directory")
        accepted.record(strong, at: here, path: "/basic")
        #expect(isDowngrade("/basic"), "the server has accepted a stronger scheme")
    }

    @Test func tokensAndTicketsDoNotAffectPasswordsInOtherRealms() throws {
        var accepted = AcceptedStrength()
        accepted.record(.bearer(realm: "api"), at: here, path: "/api")
        accepted.record(.negotiate, at: here, path: "/tickets")
        let basic = try challenge("Basic realm=\"r\"")
        #expect(!accepted.isDowngrade(basic, at: here, path: "/", reach: .server))
        #expect(accepted.isDowngrade(.basic(realm: "api"), at: here, path: "/", reach: .realm))
    }

    @Test func manyRealmsDoNotMakeAServerWeaker() throws {
        var accepted = AcceptedStrength()
        accepted.record(try challenge(Self.digest), at: here, path: "/")
        for number in 0..<300 { accepted.record(.basic(realm: "\(number)"), at: here, path: "/\(number)") }
        for place in 0..<300 { accepted.record(try challenge(Self.digest), at: here, path: "/places/\(place)") }
        #expect(accepted.isDowngrade(.basic(realm: "r"), at: here, path: "/", reach: .realm))
        for number in 0..<300 { accepted.record(.basic(realm: "\(number)"), at: here, path: "/\(number)") }
        #expect(
            accepted.isDowngrade(.basic(realm: "r"), at: here, path: "/", reach: .realm), "also when it is forgotten")
    }
}
