import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// The Windows domain of an account, in the keyring and in the session (SEMANTICS rule 18).
@Suite struct StoredDomainTests {
    private let ntlm = SpacePattern(scheme: "https", host: "h", port: 443, authenticationMethod: .ntlm)
    private let schema: [ExactText: ExactText] = ["xdg:schema": "org.gnome.keyring.NetworkPassword"]

    private func login(_ user: ExactText, _ domain: ExactText?, _ password: String = "pw") -> LoginCredential {
        LoginCredential(user: user, password: secret(password), domain: domain, persistence: .permanent)
    }

    private func run() throws -> TableRun {
        var run = TableRun(isKeyringEnabled: true)
        run.schemes.ntlmHosts = [try HostPattern("h")]
        return run
    }

    @Test func theDomainIsWrittenAsOthersReadIt() {
        #expect(KeyringWrite(login("bob", "CORP"), for: ntlm, over: []).attributes["domain"] == "CORP")
        #expect(KeyringWrite(login("bob", nil), for: ntlm, over: []).attributes["domain"] == nil)
        let wide = SpacePattern(scheme: "https", host: "h", port: 443, realm: "Staff")
        let attributes = KeyringWrite(login("bob", "CORP"), for: wide, over: []).attributes
        #expect(attributes["domain"] == "Staff")
        #expect(attributes["watchword-domain"] == "CORP")
    }

    @Test func aWrittenDomainIsReadBack() throws {
        let attributes = KeyringWrite(login("bob", "CORP"), for: ntlm, over: []).attributes
        var run = try run()
        let fetch = try run.fetch("https://h/")
        run.challenge(fetch, "NTLM")
        run.found(fetch, [item("1", attributes, "pw")])
        #expect(run.requests[fetch]?.last?.handshake?.domain == "CORP")
        let stored = try #require(StoredItem(item("1", attributes, nil)))
        #expect(stored.account == Account(user: "bob", domain: "CORP"))
        #expect(stored.pattern == ntlm)
    }

    @Test("Rule 17: only an item that names its domain is removed when it is refused")
    func onlyAnItemThatNamesItsDomainIsRemovedWhenItIsRefused() throws {
        for (user, domain, isRemoved) in [
            ("bob", "CORP", true), ("bob", nil, false), ("CORP\\bob", nil, true), ("bob@corp.example", nil, true),
        ] as [(ExactText, ExactText?, Bool)] {
            let attributes = KeyringWrite(login(user, domain), for: ntlm, over: []).attributes
            var run = try run()
            let fetch = try run.fetch("https://h/")
            run.challenge(fetch, "NTLM")
            run.found(fetch, [item("1", attributes, "pw")])
            run.challenge(fetch, "NTLM")
            let removals = run.effects.filter { if case .remove = $0 { true } else { false } }
            #expect(removals.count == (isRemoved ? 1 : 0), "\(user)")
        }
    }

    @Test func anItemWithoutItsDomainIsCompleted() {
        let bare = KeyringWrite(login("bob", nil), for: ntlm, over: []).attributes.merging(schema) { $1 }
        let there = item("1", bare, "pw")
        let write = KeyringWrite(login("bob", "CORP"), for: ntlm, over: [there])
        #expect(write.incomplete == there.id)
        #expect(write.attributes["watchword-default"] == "1")
        #expect(KeyringWrite(login("bob", "CORP", "other"), for: ntlm, over: [there]).incomplete == nil)
        #expect(KeyringWrite(login("bob", nil), for: ntlm, over: [there]).unchanged == there.id)
    }

    @Test func theSameUserOfAnotherDomainIsAnotherItem() {
        let first = KeyringWrite(login("bob", "ONE"), for: ntlm, over: [])
        let there = item("1", first.attributes.merging(schema) { $1 }, "pw")
        let second = KeyringWrite(login("bob", "TWO"), for: ntlm, over: [there])
        #expect((second.unchanged, second.incomplete) == (nil, nil))
        #expect(second.attributes["watchword-default"] == nil)
    }

    @Test func theSessionKeepsBothDomains() {
        let space = ProtectionSpace(
            scheme: "https", host: "h", port: 443, realm: nil, authenticationMethod: .ntlm)
        var cache = SessionCache()
        for domain in ["ONE", "TWO"] as [ExactText] {
            cache.remember(login("bob", domain), for: space, path: "/", digest: nil, now: .zero)
            _ = cache.give(login("bob", domain), for: ntlm, now: .zero)
        }
        #expect(cache.listing(now: .zero).map(\.domain) == ["ONE", "ONE", "TWO", "TWO"])
        let named = cache.credential(
            for: space, user: Account(user: "bob", domain: "TWO"), at: Challenger(space), now: .zero)
        #expect(named?.domain == "TWO")
    }

    @Test func aConsentIsForOneDomain() throws {
        var run = TableRun(isKeyringEnabled: true, sharing: .ask)
        run.schemes.ntlmHosts = [try HostPattern("h")]
        let fetch = try run.fetch("https://h/", subject: Subject(.exe, "/usr/bin/mailer"))
        run.challenge(fetch, "NTLM")
        let attributes = KeyringWrite(login("bob", "CORP"), for: ntlm, over: []).attributes
        run.found(fetch, [item("1", attributes, "pw")])
        #expect(run.confirmation(fetch)?.user == "CORP\\bob")
    }
}
