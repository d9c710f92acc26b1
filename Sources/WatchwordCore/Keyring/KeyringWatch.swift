public import WatchwordProtocol

/// A change by another program to a credential in the keyring.
public enum KeyringChange: Sendable, Equatable {
    /// The credential is new or its value has changed.
    case stored(KeyringItem)
    case removed
}

/// Filters the signals of the keyring: only changes to HTTP logins by other programs are reported.
///
/// The keyring signals every change to all programs, including the program that made it. Most services signal a change
/// before they reply to the call that made it; a later signal is recognised by its item.
public struct KeyringWatch: Sendable {
    public struct Signal: Sendable, Equatable {
        public enum Kind: Sendable {
            case created, changed, deleted
        }

        public var kind: Kind
        /// The identifier of the item in the keyring.
        public var item: String

        public init(_ kind: Kind, _ item: String) {
            self.kind = kind
            self.item = item
        }
    }

    /// The queries that find the HTTP logins in the keyring when the watch begins.
    public static let queries: [[ExactText: ExactText]] = ["https", "http"].map {
        KeyringAttributes.everything.merging(["protocol": $0]) { own, _ in own }
    }
    private static let limit = 4096
    private static let grace = Duration.seconds(1)

    /// The items that are HTTP logins. Recorded because a deleted item no longer has attributes.
    private var known: Set<String> = []
    /// The known items that are locked. Unlocking an item also causes a signal, which is not reported.
    private var locked: Set<String> = []
    private var waiting: [Signal] = []
    /// The index in `waiting` of the first signal after this broker began a change of its own.
    private var start: Int?
    /// By item, the time until which a signal belongs to this broker's own change.
    private var late: [String: Duration] = [:]

    public init() {}

    /// Records the items that exist when the watch begins.
    public mutating func learn(unlocked: [String], locked: [String]) {
        for item in unlocked + locked { remember(item) }
        self.locked.formUnion(locked.filter(known.contains))
    }

    public mutating func record(_ signal: Signal, now: Duration) {
        if let end = late[signal.item] {
            if now < end { return }
            late[signal.item] = nil
        }
        guard waiting.count < Self.limit else { return }
        // Some services send `changed` for an item that is new, or several times for one change.
        let last = waiting[(start ?? 0)...].last { $0.item == signal.item }
        if signal.kind == .changed, let last, last.kind != .deleted { return }
        waiting.append(signal)
    }

    // MARK: Changes of this broker

    public mutating func beginOwnChange() { start = waiting.count }

    /// - Parameter item: the changed item; `nil` if nothing was changed.
    /// - Parameter isThere: whether the item exists now.
    public mutating func endOwnChange(of item: String?, isThere: Bool, now: Duration) {
        guard let start else { return }
        self.start = nil
        guard let item else { return }
        let count = waiting.count
        waiting = waiting[..<start] + waiting[start...].filter { $0.item != item }
        late = late.filter { $0.value > now }
        if waiting.count == count { late[item] = now + Self.grace }
        if isThere { remember(item) } else { known.remove(item) }
    }

    // MARK: Changes of others

    /// Returns the next signal. Except for a deleted item, the caller looks up the item and passes it to `change`.
    public mutating func next() -> Signal? { waiting.isEmpty ? nil : waiting.removeFirst() }

    /// Returns the change to report; `nil` for none.
    /// - Parameter item: the current item; `nil` if it does not exist.
    public mutating func change(_ signal: Signal, _ item: KeyringItem?) -> KeyringChange? {
        if signal.kind == .deleted { return forget(signal.item) }
        // The item has been deleted since the signal; another signal reports that.
        guard let item else { return nil }
        if item.isLocked {
            if known.contains(item.id) { locked.insert(item.id) }
            return nil
        }
        let isUnlocked = locked.remove(item.id) != nil
        guard isLogin(item) else { return forget(item.id) }
        remember(item.id)
        return isUnlocked && signal.kind == .changed ? nil : .stored(item)
    }

    private mutating func remember(_ item: String) {
        if known.count < Self.limit { known.insert(item) }
    }

    private mutating func forget(_ item: String) -> KeyringChange? {
        locked.remove(item)
        return known.remove(item) != nil ? .removed : nil
    }

    private func isLogin(_ item: KeyringItem) -> Bool {
        KeyringAttributes.everything.allSatisfy { item.attributes[$0.key] == $0.value } && StoredItem(item) != nil
    }
}
