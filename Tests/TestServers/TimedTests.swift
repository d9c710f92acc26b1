package import Testing

/// For tests that depend on time: a client that does not read is disconnected, a transfer times out.
///
/// All tests of a run start at once, and their tasks wait in one queue: each pause would last until the computations of other tests
/// are done. Tasks of high priority have separate threads.
package struct TimedTests: SuiteTrait, TestTrait, TestScoping {
    package var isRecursive: Bool { true }

    package func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withoutActuallyEscaping(function) { function in
            try await Task(priority: .high) { try await function() }.value
        }
    }
}

extension Trait where Self == TimedTests {
    /// These tests do not wait for tests that only compute.
    package static var timed: Self { Self() }

    /// These tests run in a process of their own (`processExitsWith`). Swift Testing waits for such processes on a thread that uses
    /// a whole processor from the exit of one until the task of its test continues.
    package static var startsProcess: Self { Self() }
}
