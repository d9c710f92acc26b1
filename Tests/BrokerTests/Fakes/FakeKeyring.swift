import Synchronization
import WatchwordCore
import WatchwordProtocol

/// A keyring that a test controls: lookups wait until they are answered; stored items are recorded.
final class FakeKeyring: KeyringPort {
    private struct State {
        var items: [KeyringItem] = []
        var failure: KeyringFailure?
        var isSilent = false
        var waiting: [Completion<[KeyringItem]>] = []
        var searches = 0
        var locked: Set<String> = []
        var unlocks = 0
        var last = 0
        /// Changes that wait, if they do.
        var held: [@Sendable () -> Void]?
        var report: (@Sendable (KeyringChange) -> Void)?
    }

    private let state = Mutex(State())

    var items: [KeyringItem] { state.withLock { $0.items } }

    var searches: Int { state.withLock { $0.searches } }

    var unlocks: Int { state.withLock { $0.unlocks } }

    /// Locks the items that are stored now.
    func lock() { state.withLock { state in state.locked = Set(state.items.map(\.id)) } }

    /// The failure of every call; `nil` lets them succeed.
    var failure: KeyringFailure? {
        get { state.withLock { $0.failure } }
        set { state.withLock { $0.failure = newValue } }
    }

    /// Lookups get no answer until `end` is called.
    func stall() { state.withLock { $0.isSilent = true } }

    /// Answers the oldest pending lookup.
    func end(_ result: Result<[KeyringItem], KeyringFailure>) {
        let completion = state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
        completion?(result)
    }

    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// Changes wait until `release` is called.
    func hold() { state.withLock { $0.held = [] } }

    /// Makes the changes that wait.
    func release() {
        let held = state.withLock { $0.held.take() } ?? []
        for change in held { change() }
    }

    private func change<Value: Sendable>(
        _ completion: @escaping Completion<Value>, _ value: @escaping @Sendable (inout State) -> Value
    ) {
        let isHeld = state.withLock { state in
            state.held?.append { self.answer(completion, value) }
            return state.held != nil
        }
        if !isHeld { answer(completion, value) }
    }

    private func answer<Value>(_ completion: Completion<Value>, _ value: (inout State) -> Value) {
        let result = state.withLock { state -> Result<Value, KeyringFailure> in
            if let failure = state.failure { return .failure(failure) }
            return .success(value(&state))
        }
        completion(result)
    }

    func search(_ queries: [[ExactText: ExactText]], withSecrets: Bool, completion: @escaping Completion<[KeyringItem]>)
    {
        let isSilent = state.withLock { state in
            state.searches += 1
            if state.isSilent { state.waiting.append(completion) }
            return state.isSilent
        }
        guard !isSilent else { return }
        answer(completion) { state in
            let found = state.items.filter { item in
                queries.contains { query in query.allSatisfy { item.attributes[$0.key] == $0.value } }
            }
            return found.map { item in
                guard state.locked.contains(item.id) else { return item }
                return KeyringItem(
                    id: item.id, label: item.label, attributes: item.attributes, secret: nil, isLocked: true)
            }
        }
    }

    func store(
        _ secret: Secret, attributes: [ExactText: ExactText], label: String, completion: @escaping Completion<String>
    ) {
        change(completion) { state in
            var attributes = attributes
            attributes["xdg:schema"] = "org.gnome.keyring.NetworkPassword"
            state.items.removeAll { $0.attributes == attributes }
            state.last += 1
            state.items.append(
                KeyringItem(
                    id: "/item/\(state.last)", label: label, attributes: attributes, secret: secret, isLocked: false))
            return "/item/\(state.last)"
        }
    }

    func remove(_ id: String, ifSecretIs expected: Secret?, completion: @escaping Completion<Bool>) {
        change(completion) { state in
            let index = state.items.firstIndex { $0.id == id && (expected == nil || $0.secret == expected) }
            if let index { state.items.remove(at: index) }
            return index != nil
        }
    }

    func setAttributes(_ attributes: [ExactText: ExactText], of id: String, completion: @escaping Completion<Void>) {
        answer(completion) { state in
            if let index = state.items.firstIndex(where: { $0.id == id }) { state.items[index].attributes = attributes }
        }
    }

    func observe(_ report: @escaping @Sendable (KeyringChange) -> Void) { state.withLock { $0.report = report } }

    /// Reports a change made by another program.
    func change(_ change: KeyringChange) { state.withLock { $0.report }?(change) }

    func unlock(limit: Duration, completion: @escaping Completion<Void>) {
        answer(completion) { state in
            state.unlocks += 1
            state.locked = []
        }
    }

    func check(completion: @escaping Completion<Void>) { answer(completion) { _ in } }
}
