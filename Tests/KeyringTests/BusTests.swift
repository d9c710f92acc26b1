import Foundation
import Synchronization
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

@testable import Keyring

/// How the keyring finds the message bus, its time limits, and its shutdown.
@Suite(.timed, .realServers) struct BusTests {
    private static let query: [[ExactText: ExactText]] = [["server": "example.org"]]

    @Test func findsTheBusInTheEnvironment() throws {
        let bus = try PrivateBus()
        defer { bus.stop() }
        let folder = bus.folder.path
        #expect(BusAddress.ofSession { $0 == "DBUS_SESSION_BUS_ADDRESS" ? "unix:path=/a" : folder } == "unix:path=/a")
        #expect(BusAddress.ofSession { $0 == "XDG_RUNTIME_DIR" ? folder : nil } == "unix:path=\(folder)/bus")
        #expect(BusAddress.ofSession { $0 == "XDG_RUNTIME_DIR" ? "/no/such/folder" : nil } == nil)
        #expect(BusAddress.ofSession { $0 == "DBUS_SESSION_BUS_ADDRESS" ? "autolaunch:" : nil } == nil)
        #expect(BusAddress.ofSession { _ in nil } == nil)
        let strange = bus.folder.appendingPathComponent("a b,c=é").path
        try FileManager.default.createDirectory(atPath: strange, withIntermediateDirectories: true)
        #expect(symlink("\(folder)/bus", "\(strange)/bus") == 0)
        let escaped = "unix:path=\(folder)/a%20b%2cc%3d%c3%a9/bus"
        #expect(BusAddress.ofSession { $0 == "XDG_RUNTIME_DIR" ? strange : nil } == escaped)
    }

    /// There may be a keyring: "absent" would let a netrc file answer in its place.
    @Test func aLibraryThatCannotBeLoadedIsNotAnAbsentKeyring() {
        #expect(KeyringFailure.notLoaded("no such file", hasBus: true).kind == .refused)
        #expect(KeyringFailure.notLoaded("no such file", hasBus: false).kind == .absent)
    }

    @Test func reportsAMissingBus() async throws {
        let keyring = SecretServiceKeyring(busAddress: "unix:path=/no/such/bus")
        defer { keyring.shutDown() }
        #expect(await keyring.search(Self.query).failureKind == .absent)
        #expect(await keyring.check().failureKind == .absent)
    }

    /// dbus-run-session and dbus-launch set such an address; an earlier version aborted in GIO because of it.
    @Test func takesAnAddressWithAGUID() async throws {
        let bus = try PrivateBus()
        defer { bus.stop() }
        try bus.startRig()
        let keyring = SecretServiceKeyring(busAddress: "\(bus.address),guid=ad14da214d9ec418ea4d28296b01566f")
        defer { keyring.shutDown() }
        try await keyring.check().get()
    }

    @Test func reportsAMissingService() async throws {
        try await withKeyring { keyring, bus in
            #expect(await keyring.search(Self.query).failureKind == .absent)
            try bus.startRig()
            #expect(try await keyring.search(Self.query).get().count == 1)
        }
    }

    @Test func survivesTheEndOfTheBus() async throws {
        try await withKeyring { keyring, bus in
            try bus.startRig()
            try await keyring.check().get()
            bus.endBus()
            #expect(await keyring.check().failureKind == .absent)
        }
    }

    @Test(arguments: [SilentBus.Stage.connect, .hello]) func timesOutOnASilentBus(_ stage: SilentBus.Stage) async throws
    {
        let bus = try SilentBus(until: stage)
        defer { bus.stop() }
        let keyring = SecretServiceKeyring(callLimit: .milliseconds(300), busAddress: bus.address)
        #expect(await keyring.search(Self.query).failureKind(after: .milliseconds(300)) == .timedOut)
        #expect(await keyring.search(Self.query).failureKind(after: .milliseconds(300)) == .timedOut)
        // The thread has timed out, too: otherwise this would never return.
        keyring.shutDown()
    }

    @Test func callsBehindAnOpenPromptTimeOut() async throws {
        try await withKeyring(callLimit: .seconds(3)) { keyring, bus in
            try bus.startRig("locked")
            // The prompt's window stays open for long, and all other calls wait behind it.
            async let unlocked = keyring.unlock(limit: .seconds(9))
            try await bus.waitForCall("Prompt")
            let (searched, prompted) = await (keyring.search(Self.query), unlocked)
            #expect(searched.failureKind(after: .seconds(3)) == .timedOut && prompted.failureKind == .timedOut)
            #expect(searched.took < prompted.took)
            #expect(try await keyring.search(Self.query).get().count == 1)
        }
    }

    @Test(.timeLimit(.minutes(3))) func shutdownCancelsRunningAndQueuedCalls() async throws {
        let bus = try PrivateBus()
        defer { bus.stop() }
        try bus.startRig("locked")
        let keyring = SecretServiceKeyring(busAddress: bus.address)
        async let unlocked = keyring.unlock(limit: .seconds(600))
        async let found = keyring.search(Self.query)
        // The shutdown dismisses the prompt, whether or not the keyring has received the reply to this call.
        try await bus.waitForCall("Prompt")
        keyring.shutDown()
        #expect(await unlocked.failureKind == .cancelled)
        // The search ran either before the prompt or after it.
        let foundKind = await found.failureKind
        #expect(foundKind == .cancelled || foundKind == nil)
        #expect(await keyring.search(Self.query).failureKind == .cancelled)
        try await bus.waitForCall("Dismiss")
        keyring.shutDown()
    }

    @Test(.timeLimit(.minutes(3))) func endsInTheMiddleOfACall() async throws {
        let bus = try PrivateBus()
        defer { bus.stop() }
        try bus.startRig("stall")
        let keyring = SecretServiceKeyring(callLimit: .seconds(600), busAddress: bus.address)
        async let found = keyring.search(Self.query)
        try await bus.waitForCall("SearchItems")
        keyring.shutDown()
        #expect(await found.failureKind == .cancelled)
    }

    @Test func losesTheServiceWhileAWindowIsOpen() async throws {
        try await withKeyring { keyring, bus in
            let service = try bus.startRig("locked")
            async let unlocked = keyring.unlock(limit: .seconds(600))
            try await bus.waitForCall("Prompt")
            bus.end(service)
            #expect(await unlocked.failureKind == .lost)
        }
    }

    @Test func answersEachCallOnce() async throws {
        let bus = try PrivateBus()
        defer { bus.stop() }
        try bus.startRig()
        for round in 0..<20 {
            let answers = Mutex(0)
            let keyring = SecretServiceKeyring(busAddress: bus.address)
            for _ in 0..<20 { keyring.search(Self.query, withSecrets: true) { _ in answers.withLock { $0 += 1 } } }
            try await until { answers.withLock(\.self) >= round }
            keyring.shutDown()
            #expect(answers.withLock(\.self) == 20)
        }
    }
}
