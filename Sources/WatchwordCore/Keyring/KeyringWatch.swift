public import WatchwordProtocol

/// A credential in the keyring that another program has changed.
public enum KeyringChange: Sendable, Equatable {
    /// It is new, or it is another one than before.
    case stored(KeyringItem)
    case removed
}

/// Tells which signals of the keyring are news: those about logins for HTTP that another program has changed.
///
/// The keyring signals every change to everybody, also to whoever made it. Most services do so before they reply; a signal that
/// comes a moment later is known by its item.
public struct KeyringWatch: Sendable {
    public struct Signal: Sendable, Equatable {
        public enum Kind: Sendable {
            case created, changed, deleted
        }

        public var kind: Kind
        /// The keyring's own name for the item.
        public var item: String

        public init(_ kind: Kind, _ item: String) {
            self.kind = kind
            self.item = item
        }
    }

    /// What finds the items whose end is news.
    public static let queries: [[ExactText: ExactText]] = ["https", "http"].map {
        KeyringAttributes.everything.merging(["protocol": $0]) { own, _ in own }
    }
    private static let limit = 4096
    private static let grace = Duration.seconds(1)

    /// A deleted item cannot be asked what it was.
    private var known: Set<String> = []
    /// Unlocking changes an item too, and is no news.
    private var locked: Set<String> = []
    private var waiting: [Signal] = []
    /// Where in `waiting` the signals begin that came while this broker was changing something.
    private var start: Int?
    /// Until when a signal about an item is an answer to this broker's own change.
    private var late: [String: Duration] = [:]

    public init() {}

    /// The items that are there when the watch begins.
    public mutating func learn(unlocked: [String], locked: [String]) {
        for item in unlocked + locked { remember(item) }
        self.locked.formUnion(locked.filter(known.contains))
    }

    public mutating func note(_ signal: Signal, now: Duration) {
        if let end = late[signal.item] {
            if now < end { return }
            late[signal.item] = nil
        }
        guard waiting.count < Self.limit else { return }
        // Some services say of an item that is new, or has several changes, that it has changed.
        let last = waiting[(start ?? 0)...].last { $0.item == signal.item }
        if signal.kind == .changed, let last, last.kind != .deleted { return }
        waiting.append(signal)
    }

    // MARK: Changes of this broker

    public mutating func beginOwnChange() { start = waiting.count }

    /// - Parameters:
    ///   - item: what was changed; `nil` where nothing was.
    ///   - isThere: whether it is there now.
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

    /// The signal that is looked at next; of all but deleted items `change` wants the item.
    public mutating func next() -> Signal? { waiting.isEmpty ? nil : waiting.removeFirst() }

    /// What has changed for people; `nil` for nothing.
    /// - Parameter item: as it is now; `nil` when there is none.
    public mutating func change(_ signal: Signal, _ item: KeyringItem?) -> KeyringChange? {
        if signal.kind == .deleted { return forget(signal.item) }
        // Of one that is gone a signal follows.
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
