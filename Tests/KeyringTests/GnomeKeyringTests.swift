import Keyring
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

/// The keyring with the real gnome-keyring-daemon, and secret-tool as another program.
@Suite(.timed, .realServers) struct GnomeKeyringTests {
    private static let schema: ExactText = "xdg:schema"
    private static let attributes: [ExactText: ExactText] = [
        "server": "example.org", "protocol": "https", "port": "443", "user": "alice",
    ]

    @Test func storesFindsAndRemoves() async throws {
        try await withKeyring { keyring, bus in
            try bus.startGnomeKeyring()
            try await keyring.check().get()
            let id = try await keyring.store("geheim", Self.attributes, label: "Läbel").get()
            let found = try await keyring.search([["server": "example.org"]]).get()
            #expect(found.map(\.id) == [id])
            let item = try #require(found.first)
            #expect(item.label == "Läbel")
            #expect(item.attributes.filter { $0.key != Self.schema } == Self.attributes)
            #expect(item.attributes[Self.schema] == "org.gnome.keyring.NetworkPassword")
            #expect(item.secret == secret("geheim"))
            #expect(!item.isLocked)

            #expect(try await keyring.remove(id, ifSecretIs: "other").get() == false)
            #expect(try await keyring.remove(id, ifSecretIs: "geheim").get() == true)
            #expect(try await keyring.remove(id).get() == false)
            #expect(try await keyring.search([["server": "example.org"]]).get().isEmpty)
        }
    }

    @Test func leavesSecretsOut() async throws {
        try await withKeyring { keyring, bus in
            try bus.startGnomeKeyring()
            _ = try await keyring.store("geheim", Self.attributes).get()
            let found = try await keyring.search([Self.attributes], withSecrets: false).get()
            #expect(found.count == 1 && found[0].secret == nil && !found[0].isLocked)
        }
    }

    @Test func replacesTheItemWithTheSameAttributesOnly() async throws {
        try await withKeyring { keyring, bus in
            try bus.startGnomeKeyring()
            let first = try await keyring.store("one", Self.attributes).get()
            let fewer = try await keyring.store("two", ["server": "example.org"]).get()
            #expect(first != fewer)
            #expect(try await keyring.store("three", Self.attributes, label: "New").get() == first)
            let found = try await keyring.search([["server": "example.org"]]).get()
            #expect(found.count == 2)
            #expect(found.first { $0.id == first }?.secret == secret("three"))
            #expect(found.first { $0.id == first }?.label == "New")
            #expect(found.first { $0.id == fewer }?.secret == secret("two"))
        }
    }

    @Test func setsAttributesAndKeepsTheSchema() async throws {
        try await withKeyring { keyring, bus in
            try bus.startGnomeKeyring()
            let id = try await keyring.store("geheim", Self.attributes).get()
            try await keyring.setAttributes(["server": "other.example", "watchword": "1"], of: id).get()
            #expect(try await keyring.search([["user": "alice"]]).get().isEmpty)
            let item = try #require(try await keyring.search([["server": "other.example"]]).get().first)
            #expect(
                item.attributes == [
                    "server": "other.example", "watchword": "1", Self.schema: "org.gnome.keyring.NetworkPassword",
                ])
            #expect(item.secret == secret("geheim"))
        }
    }

    /// Two users with canonically equivalent names have one item each.
    @Test func usersAreComparedByteForByte() async throws {
        try await withKeyring { keyring, bus in
            try bus.startGnomeKeyring()
            let users: [ExactText] = ["Kelvin", "\u{212A}elvin", "Zo\u{EB}", "Zoe\u{308}"]
            for user in users {
                _ = try await keyring.store("of \(user)", ["server": "h.example", "user": user]).get()
            }
            for user in users {
                let items = try await keyring.search([["server": "h.example", "user": user]]).get()
                #expect(items.map(\.secret) == [secret("of \(user)")])
            }
        }
    }

    @Test func findsAnItemOnceAndAtMostTheLimit() async throws {
        try await withKeyring { keyring, bus in
            try bus.startGnomeKeyring()
            for number in 0..<Limits.keyringItems + 3 {
                _ = try await keyring.store("s", ["server": "many.example", "number": "\(number)"]).get()
            }
            let twice: [[ExactText: ExactText]] = [["number": "7"], ["server": "many.example", "number": "7"]]
            #expect(try await keyring.search(twice).get().count == 1)
            #expect(try await keyring.search([["server": "many.example"]]).get().count == Limits.keyringItems)
        }
    }

    @Test func sharesItemsWithSecretTool() async throws {
        try await withKeyring { keyring, bus in
            try bus.startGnomeKeyring()
            _ = try await keyring.store("pass wörd", Self.attributes).get()
            let looked = try bus.run(["secret-tool", "lookup", "server", "example.org", "user", "alice"])
            #expect(looked.output == "pass wörd" && looked.status == 0)

            let stored = try bus.run(
                ["secret-tool", "store", "--label=Theirs", "server", "theirs.example", "user", "bob"],
                input: "their secret")
            #expect(stored.status == 0)
            let item = try #require(try await keyring.search([["server": "theirs.example"]]).get().first)
            #expect(item.label == "Theirs" && item.secret == secret("their secret"))
        }
    }

    @Test(arguments: [0, 1, 15, 16, 17, 4096]) func keepsSecretsByteForByte(_ count: Int) async throws {
        try await withKeyring { keyring, bus in
            try bus.startGnomeKeyring()
            let text = String(repeating: "x", count: count)
            let id = try await keyring.store(text, Self.attributes).get()
            #expect(try await keyring.search([Self.attributes]).get().first?.secret == secret(text))
            #expect(try await keyring.remove(id, ifSecretIs: text).get() == true)
        }
    }

    @Test func worksAgainAfterTheServiceWasStartedAgain() async throws {
        try await withKeyring { keyring, bus in
            let first = try bus.startGnomeKeyring()
            _ = try await keyring.store("geheim", Self.attributes).get()
            bus.end(first)
            #expect(await keyring.search([Self.attributes]).failureKind == .absent)
            try bus.startGnomeKeyring()
            #expect(try await keyring.search([Self.attributes]).get().first?.secret == secret("geheim"))
        }
    }

    @Test func listsLockedItems() async throws {
        try await withKeyring { keyring, bus in
            try bus.startGnomeKeyring()
            let id = try await keyring.store("geheim", Self.attributes).get()
            _ = try bus.run(["secret-tool", "lock", "--collection=login"])
            #expect(await keyring.check().failureKind == .locked)
            let item = try #require(try await keyring.search([["user": "alice"]]).get().first)
            #expect(item.id == id && item.isLocked && item.secret == nil)
            #expect(await keyring.remove(id).failureKind == .locked)
            #expect(await keyring.remove(id, ifSecretIs: "geheim").failureKind == .locked)
            #expect(await keyring.setAttributes([:], of: id).failureKind == .locked)
            // On this bus no program can show the prompt, which the service reports as a dismissal.
            #expect(await keyring.unlock(limit: .seconds(30)).failureKind == .dismissed)
            #expect(await keyring.store("s", ["a": "b"]).failureKind == .dismissed)
        }
    }
}
