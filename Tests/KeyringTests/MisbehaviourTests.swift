import Keyring
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

/// The keyring with the Secret Service of the end-to-end tests' rig, which can misbehave.
@Suite(.timed, .realServers) struct MisbehaviourTests {
    private static let query: [[ExactText: ExactText]] = [["server": "example.org"]]
    private static let short = Duration.milliseconds(400)

    @Test func worksWithTheRig() async throws {
        try await withKeyring { keyring, bus in
            try bus.startRig()
            try await keyring.check().get()
            let item = try #require(try await keyring.search(Self.query).get().first)
            #expect(item.secret == secret("open sesame") && item.label == "Rig")
            let id = try await keyring.store("geheim", ["server": "new.example"]).get()
            #expect(try await keyring.search([["server": "new.example"]]).get().map(\.id) == [id])
            #expect(try await keyring.store("neu", ["server": "new.example"]).get() == id)
            #expect(try await keyring.remove(id, ifSecretIs: "geheim").get() == false)
            #expect(try await keyring.remove(id, ifSecretIs: "neu").get() == true)
            try await keyring.setAttributes(["server": "moved.example"], of: item.id).get()
            let moved = try #require(try await keyring.search([["server": "moved.example"]]).get().first)
            #expect(
                moved.attributes == ["server": "moved.example", "xdg:schema": "org.gnome.keyring.NetworkPassword"])
            // All of these calls used one connection.
            #expect(bus.calls.count { $0.contains(".OpenSession ") } == 1)
        }
    }

    @Test func handlesInvalidArgumentsAndMissingItems() async throws {
        try await withKeyring { keyring, bus in
            try bus.startRig("empty")
            #expect(try await keyring.search(Self.query).get().isEmpty)
            #expect(try await keyring.search([]).get().isEmpty)
            #expect(try await keyring.search([["server": "a\0b"]]).get().isEmpty)
            #expect(await keyring.store("s", ["server": "a\0b"]).failureKind == .refused)
            #expect(await keyring.store("s", [:], label: "\0").failureKind == .refused)
            #expect(await keyring.remove("no path").failureKind == .refused)
            #expect(try await keyring.remove("/no/such/item").get() == false)
            #expect(await keyring.setAttributes([:], of: "/no/such/item").failureKind == .refused)
        }
    }

    @Test func listsLockedItemsWithoutAPrompt() async throws {
        try await withKeyring { keyring, bus in
            try bus.startRig("locked")
            #expect(await keyring.check().failureKind == .locked)
            let item = try #require(try await keyring.search(Self.query).get().first)
            #expect(item.isLocked && item.secret == nil && item.attributes["user"] == "alice")
            #expect(await keyring.remove(item.id, ifSecretIs: "open sesame").failureKind == .locked)
            #expect(await keyring.remove(item.id).failureKind == .locked)
            #expect(await keyring.setAttributes([:], of: item.id).failureKind == .locked)
            #expect(!bus.wasCalled("Prompt") && !bus.wasCalled("Unlock") && bus.wasCalled("Dismiss"))
        }
    }

    @Test func dismissesAPromptThatTimesOut() async throws {
        try await withKeyring(windowLimit: .seconds(2)) { keyring, bus in
            try bus.startRig("locked")
            #expect(await keyring.unlock(limit: .seconds(2)).failureKind(after: .seconds(2)) == .timedOut)
            #expect(await keyring.store("s", ["a": "b"]).failureKind(after: .seconds(2)) == .timedOut)
            #expect(await keyring.check().failureKind == .locked)
            #expect(bus.calls.count { $0.contains(".Dismiss ") } == 2)
        }
    }

    @Test func waitsForTheUserLongerThanForTheService() async throws {
        try await withKeyring(callLimit: .seconds(2), windowLimit: .seconds(4)) { keyring, bus in
            try bus.startRig("locked")
            #expect(await keyring.unlock(limit: .seconds(4)).failureKind(after: .seconds(4)) == .timedOut)
            #expect(await keyring.store("s", ["a": "b"]).failureKind(after: .seconds(4)) == .timedOut)
        }
    }

    @Test func reportsADismissedPrompt() async throws {
        try await withKeyring { keyring, bus in
            try bus.startRig("dismiss")
            #expect(await keyring.unlock(limit: .seconds(60)).failureKind == .dismissed)
            #expect(await keyring.store("s", ["a": "b"]).failureKind == .dismissed)
            #expect(try await keyring.search(Self.query).get().count == 1)
        }
    }

    @Test func unlocksWhenTheUserDoes() async throws {
        try await withKeyring { keyring, bus in
            try bus.startRig("ask")
            try await keyring.unlock(limit: .seconds(60)).get()
            try await keyring.check().get()
            #expect(try await keyring.search(Self.query).get().first?.secret == secret("open sesame"))
        }
    }

    @Test func storesAfterTheUserUnlocked() async throws {
        try await withKeyring { keyring, bus in
            try bus.startRig("ask")
            _ = try await keyring.store("s", ["a": "b"]).get()
            #expect(try await keyring.search([["a": "b"]]).get().first?.secret == secret("s"))
        }
    }

    @Test(.timeLimit(.minutes(3)), arguments: ["stall", "mute"])
    func timesOutOnASilentService(_ misbehaviour: String) async throws {
        try await withKeyring(callLimit: Self.short) { keyring, bus in
            let service = try bus.startRig(misbehaviour)
            #expect(await keyring.search(Self.query).failureKind(after: Self.short) == .timedOut)
            #expect(await keyring.check().failureKind(after: Self.short) == .timedOut)
            #expect(await keyring.store("s", ["a": "b"]).failureKind(after: Self.short) == .timedOut)
            #expect(await keyring.unlock(limit: .seconds(600)).failureKind(after: Self.short) == .timedOut)
            bus.end(service)
            try bus.startRig()
            // With such a short limit the new service may start too late.
            var found: Int?
            for _ in 0..<20 where found == nil { found = try? await keyring.search(Self.query).get().count }
            #expect(found == 1)
        }
    }

    @Test func reportsALostServiceAndFindsTheNext() async throws {
        try await withKeyring { keyring, bus in
            try bus.startRig("die")
            #expect(await keyring.search(Self.query).failureKind == .lost)
            #expect(await keyring.search(Self.query).failureKind == .absent)
            try bus.startRig()
            #expect(try await keyring.search(Self.query).get().count == 1)
        }
    }

    @Test func opensANewSessionWhenItsOwnIsForgotten() async throws {
        try await withKeyring { keyring, bus in
            try bus.startRig("forget")
            #expect(try await keyring.search(Self.query).get().count == 1)
            #expect(await keyring.search(Self.query).failureKind == .lost)
            #expect(try await keyring.search(Self.query).get().count == 1)
        }
    }

    @Test("Rule M3: a keyring session without encryption is refused")
    func refusesSecretsInTheClear() async throws {
        try await withKeyring { keyring, bus in
            try bus.startRig("plain")
            #expect(await keyring.check().failureKind == .plainOnly)
            #expect(await keyring.search(Self.query).failureKind == .plainOnly)
            #expect(await keyring.store("s", ["a": "b"]).failureKind == .plainOnly)
            #expect(!bus.wasCalled("GetSecret") && !bus.wasCalled("CreateItem"))
        }
    }

    @Test func reportsAMissingDefaultCollectionWithARemedy() async throws {
        try await withKeyring { keyring, bus in
            try bus.startRig("bare")
            guard case .failure(let failure) = await keyring.store("s", ["a": "b"]).result else {
                Issue.record("stored")
                return
            }
            #expect(failure.kind == .refused && failure.text.contains("default keyring"))
            #expect(await keyring.check().failureKind == .refused)
            #expect(await keyring.unlock(limit: .seconds(60)).failureKind == .refused)
        }
    }
}
