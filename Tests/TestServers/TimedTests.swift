package import Testing

/// For tests in which something happens in time: a client that does not read is disconnected, a transfer times out.
///
/// All tests of a run begin at once, and their tasks wait in one queue: each pause would last until all that other tests compute
/// is done. A task of high priority has threads that those do not use.
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
    /// They wait for no test that only computes.
    package static var timed: Self { Self() }
}
