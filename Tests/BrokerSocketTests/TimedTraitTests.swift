import Foundation
import Synchronization
import TestServers
import Testing

@Suite(.timed) struct TimedTraitTests {
    /// Occupies threads as a computing test does.
    private final class Others: Sendable {
        let isOver = Atomic(false)
        let running = Atomic(0)
        let outlasted = Atomic(0)

        /// The limit only ends a test that hangs.
        func hold() {
            running.add(1, ordering: .relaxed)
            for _ in 0..<60_000 where !isOver.load(ordering: .relaxed) { usleep(1000) }
            if !isOver.load(ordering: .relaxed) { outlasted.add(1, ordering: .relaxed) }
        }
    }

    @Test func aPauseDoesNotWaitForComputingTests() async throws {
        let others = Others()
        let processors = ProcessInfo.processInfo.activeProcessorCount
        let tasks = (0..<4 * processors).map { _ in Task.detached(priority: .medium) { others.hold() } }
        while others.running.load(ordering: .relaxed) < processors { try await Task.sleep(for: .milliseconds(1)) }
        try await Task.sleep(for: .milliseconds(1))
        others.isOver.store(true, ordering: .relaxed)
        for task in tasks { await task.value }
        #expect(others.outlasted.load(ordering: .relaxed) == 0)
    }
}
