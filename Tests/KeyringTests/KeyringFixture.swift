import Keyring
import Testing
import WatchwordCore
import WatchwordProtocol

/// Runs `body` with a bus and a keyring on it. Without other limits, only a test that hangs reaches them.
func withKeyring<Value>(
    callLimit: Duration = .seconds(60), windowLimit: Duration = .seconds(60),
    _ body: (SecretServiceKeyring, PrivateBus) async throws -> Value
) async throws -> Value {
    let bus = try PrivateBus()
    defer { bus.stop() }
    let keyring = SecretServiceKeyring(callLimit: callLimit, windowLimit: windowLimit, busAddress: bus.address)
    defer { keyring.shutDown() }
    return try await body(keyring, bus)
}

/// Waits until `condition` holds; the test fails after at least a minute.
func until(_ condition: () -> Bool) async throws {
    for _ in 0..<6000 {
        if condition() { return }
        try await Task.sleep(for: .milliseconds(10))
    }
    Issue.record("the expected condition did not become true")
}

func secret(_ text: String) -> Secret { Array(text.utf8).withUnsafeBytes { Secret(copying: $0) } }

/// The result of a call and its duration, measured in the completion: a test's task may resume late.
struct Answer<Value: Sendable>: Sendable {
    var result: Result<Value, KeyringFailure>
    var took: Duration

    func get() throws -> Value { try result.get() }

    var failureKind: KeyringFailure.Kind? { result.failureKind }

    /// Returns the failure if the call did not end before `limit`.
    func failureKind(after limit: Duration) -> KeyringFailure.Kind? { took >= limit ? failureKind : nil }
}

extension SecretServiceKeyring {
    private func answer<Value: Sendable>(
        _ begin: (@escaping Completion<Value>) -> Void
    ) async -> Answer<Value> {
        let start = ContinuousClock.now
        return await withCheckedContinuation { continuation in
            begin { continuation.resume(returning: Answer(result: $0, took: start.duration(to: .now))) }
        }
    }

    func search(_ queries: [[ExactText: ExactText]], withSecrets: Bool = true) async -> Answer<[KeyringItem]> {
        await answer { search(queries, withSecrets: withSecrets, completion: $0) }
    }

    func store(_ text: String, _ attributes: [ExactText: ExactText], label: String = "Label") async -> Answer<String> {
        await answer { store(secret(text), attributes: attributes, label: label, completion: $0) }
    }

    func remove(_ id: String, ifSecretIs expected: String? = nil) async -> Answer<Bool> {
        await answer { remove(id, ifSecretIs: expected.map(secret), completion: $0) }
    }

    func setAttributes(_ attributes: [ExactText: ExactText], of id: String) async -> Answer<Void> {
        await answer { setAttributes(attributes, of: id, completion: $0) }
    }

    func unlock(limit: Duration) async -> Answer<Void> { await answer { unlock(limit: limit, completion: $0) } }

    func check() async -> Answer<Void> { await answer { check(completion: $0) } }
}

extension Result where Failure == KeyringFailure {
    var failureKind: KeyringFailure.Kind? { if case .failure(let failure) = self { failure.kind } else { nil } }
}
