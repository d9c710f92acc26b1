import Testing
import WatchwordProtocol

@testable import WatchwordCore

/// Several stored credentials that fit one challenge (SEMANTICS rule 18).
@Suite struct KnownUsersTests {
    private let client = ClientTag(value: 1)
    private let items = [item("1", exact("bob"), "pw-bob"), item("2", exact("alice"), "pw-alice")]
    private let pattern = SpacePattern(scheme: "http", host: "h", port: 80)

    private func asked(
        _ run: inout TableRun, _ items: [KeyringItem]? = nil, subject: Subject? = nil,
        adapt: (inout FetchRequest) -> Void = { _ in }
    ) throws -> FetchID {
        let fetch = try run.fetch(subject: subject, adapt: adapt)
        run.challenge(fetch)
        if run.isLookingUp(fetch) { run.found(fetch, items ?? self.items) }
        return fetch
    }

    @Test("Rule 18: all users whose credentials fit equally well are listed")
    func allUsersWhoseCredentialsFitEquallyWellAreListed() throws {
        var run = TableRun(isKeyringEnabled: true)
        let fetch = try asked(&run)
        #expect(run.question(fetch)?.knownUsers.map(\.user) == ["bob", "alice"])
        #expect(run.question(fetch)?.proposedCredential == nil)
        run.answer(fetch, .credential(.stored(.keyring("/items/2"))))
        #expect(run.sent == [basic("alice", "pw-alice")])
        run.respond(fetch, 200)
        #expect(run.results[fetch]?.authentication == .init(method: .httpBasic, source: .keyring, user: "alice"))
        #expect(!run.effects.contains { if case .store = $0 { true } else { false } })
    }

    @Test func refusedUsersAreNoLongerListed() throws {
        var run = TableRun(isKeyringEnabled: true)
        let fetch = try asked(&run)
        run.answer(fetch, .credential(.stored(.keyring("/items/2"))))
        run.challenge(fetch)
        #expect(run.question(fetch)?.knownUsers.map(\.user) == ["bob"])
        run.answer(fetch, .credential(.stored(.keyring("/items/2"))))
        #expect(run.question(fetch)?.error == .credentialNotKnown)
        #expect(run.sent.count == 1)
    }

    @Test func aFetchThatNamesAUserIsNeverMadeAsAnother() throws {
        var run = TableRun(isKeyringEnabled: true)
        let (number, _) = run.table.give(login("eve", "pw"), for: pattern, of: client, now: .zero)
        let fetch = try run.fetch("http://bob@h/")
        run.challenge(fetch)
        run.found(fetch, items)
        run.challenge(fetch)
        #expect(run.sent == [basic("bob", "pw-bob")])
        for id in [CredentialID.session(number), .keyring("/items/2"), .keyring("/items/9")] {
            #expect(run.question(fetch)?.knownUsers.isEmpty == true)
            run.answer(fetch, .credential(.stored(id)))
            #expect(run.sent.count == 1)
        }
    }

    @Test func aSingleOneThatIsProposedIsNotListed() throws {
        var run = TableRun(isKeyringEnabled: true)
        let everything = Subscription(delivery: .request, mode: .everything)
        let fetch = try run.fetch(subscription: everything)
        run.challenge(fetch)
        run.found(fetch, [items[0]])
        #expect(run.question(fetch)?.proposedCredential?.user == "bob")
        #expect(run.question(fetch)?.knownUsers.isEmpty == true)
    }

    @Test func theOthersOfTheSessionAreListed() throws {
        var run = TableRun()
        for user: ExactText in ["bob", "alice"] {
            _ = run.table.give(login(user, "pw"), for: pattern, of: client, now: .zero)
        }
        let fetch = try run.fetch(subscription: Subscription(delivery: .request, mode: .everything))
        run.challenge(fetch)
        #expect(run.question(fetch)?.proposedCredential?.user == "bob")
        #expect(run.question(fetch)?.knownUsers.map(\.user) == ["bob", "alice"])
        #expect(run.question(fetch)?.knownUsers.first?.source == .session)
    }

    @Test func aFetchWithoutStoredCredentialsSeesNoUsers() throws {
        var run = TableRun(isKeyringEnabled: true)
        let fetch = try asked(&run) { $0.isRestricted = true }
        #expect(run.question(fetch)?.knownUsers.isEmpty == true)
        run.answer(fetch, .credential(.stored(.keyring("/items/2"))))
        #expect(run.sent.isEmpty && run.question(fetch)?.error == .credentialNotKnown)
    }

    @Test func withoutConsentNoOneIsListed() throws {
        var run = TableRun(isKeyringEnabled: true, sharing: .ask)
        let fetch = try asked(&run, subject: Subject(.exe, "/usr/bin/mailer"))
        #expect(run.question(fetch)?.knownUsers.isEmpty == true)
        run.answer(fetch, .credential(.stored(.keyring("/items/2"))))
        #expect(run.sent.isEmpty)
    }
}
