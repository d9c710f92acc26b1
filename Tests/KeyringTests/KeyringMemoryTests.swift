import Foundation
import Keyring
import TestServers
import Testing
import WatchwordCore
import WatchwordProtocol

/// Copies of secrets that remain in memory, including those of libsecret and GLib.
@Suite(.timed, .realServers) struct KeyringMemoryTests {
    /// Searches until no copies are left, because pending work may have some, and returns their number in the last of many
    /// searches. They run on a thread that other tests do not wait for.
    private func copiesInTheEnd(_ search: MemorySearch) async throws -> Int {
        nonisolated(unsafe) let search = search
        var count = 0
        for _ in 0..<20 {
            count = await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: search.copies()) }
            }
            if count == 0 { break }
            try await Task.sleep(for: .milliseconds(100))
        }
        return count
    }

    @Test("Rule M3: the keyring leaves no copies of a secret")
    func leavesNoCopies() async throws {
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

    @Test func releasesTheSecretOfACallThatTimedOut() async throws {
        // Long enough for the prompt to appear on a busy machine.
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
            // The prompt is still open.
            #expect(try await copiesInTheEnd(search) == 0)
            keyring.shutDown()
            #expect(await unlocked.failureKind == .cancelled)
        }
    }
}
