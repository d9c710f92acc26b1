import Foundation
import Keyring
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

/// What secrets leave in memory, libsecret and GLib included.
@Suite(.timed) struct KeyringMemoryTests {
    /// The copies that are left when everything that ends has ended. One search, which may take seconds: not on a thread that
    /// other tests wait for.
    private func copiesInTheEnd(_ search: MemorySearch) async throws -> Int {
        try await Task.sleep(for: .milliseconds(300))
        nonisolated(unsafe) let search = search
        return await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: search.copies()) }
        }
    }

    @Test func leavesNoCopies() async throws {
        try await withKeyring { keyring, bus in
            try bus.startGnomeKeyring()
            let search = MemorySearch()
            let stored = await withCheckedContinuation { continuation in
                keyring.store(Secret(copying: search.bytes), attributes: ["a": "b"], label: "") {
                    continuation.resume(returning: $0)
                }
            }
            #expect(try stored.get().hasPrefix("/"))
            let size = try await keyring.search([["a": "b"]]).get().first?.secret?.count
            #expect(size == search.bytes.count)
            #expect(try await copiesInTheEnd(search) == 0)
        }
    }

    @Test func forgetsWhatWaitedTooLong() async throws {
        // Long enough for the window to come up on a busy machine.
        try await withKeyring(callLimit: .seconds(3)) { keyring, bus in
            try bus.startRig("locked")
            async let unlocked = keyring.unlock(limit: .seconds(120))
            try await bus.waitForCall("Prompt")
            let search = MemorySearch()
            let stored = await withCheckedContinuation { continuation in
                keyring.store(Secret(copying: search.bytes), attributes: ["a": "b"], label: "") {
                    continuation.resume(returning: $0)
                }
            }
            #expect(stored.failureKind == .timedOut)
            // The window is still open.
            #expect(try await copiesInTheEnd(search) == 0)
            keyring.shutDown()
            #expect(await unlocked.failureKind == .cancelled)
        }
    }
}
