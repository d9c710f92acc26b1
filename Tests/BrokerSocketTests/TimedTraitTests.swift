import Glibc
import Synchronization
import TestServers
import Testing

@Suite(.timed) struct TimedTraitTests {
    /// Occupies threads as a computing test does.
    private final class Others: Sendable {
        let isOver = Atomic(false)
        let outlasted = Atomic(0)

        func hold() {
            for _ in 0..<5000 where !isOver.load(ordering: .relaxed) { usleep(1000) }
            if !isOver.load(ordering: .relaxed) { outlasted.add(1, ordering: .relaxed) }
        }
    }

    @Test func aPauseDoesNotWaitForComputingTests() async throws {
        let others = Others()
        let tasks = (0..<4 * sysconf(Int32(_SC_NPROCESSORS_ONLN))).map { _ in
            Task.detached(priority: .medium) { others.hold() }
        }
        try await Task.sleep(for: .milliseconds(20))
        others.isOver.store(true, ordering: .relaxed)
        for task in tasks { await task.value }
        #expect(others.outlasted.load(ordering: .relaxed) == 0)
    }
}
