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
        var isLocked = false
        var windows = 0
        var isDismissed = false
        var last = 0
        /// Changes that wait, if they do.
        var held: [@Sendable () -> Void]?
        var holdsStore = false
        var report: (@Sendable (KeyringChange) -> Void)?
    }

    private let state = Mutex(State())

    var items: [KeyringItem] { state.withLock { $0.items } }

    var searches: Int { state.withLock { $0.searches } }

    /// The windows that were shown.
    var windows: Int { state.withLock { $0.windows } }

    /// Whether the person closes each window.
    var isDismissed: Bool {
        get { state.withLock { $0.isDismissed } }
        set { state.withLock { $0.isDismissed = newValue } }
    }

    /// Locks the items that are stored now, and the default collection.
    func lock(default isDefault: Bool = true) {
        state.withLock { state in (state.locked, state.isLocked) = (Set(state.items.map(\.id)), isDefault) }
    }

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

    /// Changes wait until `release` is called, and so do checks behind a store.
    func hold() { state.withLock { $0.held = [] } }

    /// Makes the changes that wait.
    func release() {
        let held = state.withLock { state in
            state.holdsStore = false
            return state.held.take() ?? []
        }
        for change in held { change() }
    }

    private func change<Value: Sendable>(
        _ completion: @escaping Completion<Value>, showsWindow: Bool = false, needsUnlocked: Bool = false,
        _ value: @escaping @Sendable (inout State) -> Value
    ) {
        let isHeld = state.withLock { state in
            state.held?.append {
                self.answer(completion, showsWindow: showsWindow, needsUnlocked: needsUnlocked, value)
            }
            return state.held != nil
        }
        if !isHeld { answer(completion, showsWindow: showsWindow, needsUnlocked: needsUnlocked, value) }
    }

    private func answer<Value>(
        _ completion: Completion<Value>, showsWindow: Bool = false, needsUnlocked: Bool = false,
        _ value: (inout State) -> Value
    ) {
        let result = state.withLock { state -> Result<Value, KeyringFailure> in
            if let failure = state.failure { return .failure(failure) }
            if needsUnlocked, state.isLocked { return .failure(KeyringFailure(.locked, "it is locked")) }
            if showsWindow, state.isLocked {
                state.windows += 1
                if state.isDismissed { return .failure(KeyringFailure(.dismissed, "the window was closed")) }
                (state.isLocked, state.locked) = (false, [])
            }
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
        state.withLock { $0.holdsStore = $0.held != nil }
        change(completion, showsWindow: true) { state in
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
        change(completion, showsWindow: true) { _ in }
    }

    func check(completion: @escaping Completion<Void>) {
        if state.withLock({ $0.holdsStore }) {
            change(completion, needsUnlocked: true) { _ in }
        } else {
            answer(completion, needsUnlocked: true) { _ in }
        }
    }
}
