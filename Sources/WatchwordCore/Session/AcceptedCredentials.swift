internal import WatchwordProtocol

/// The accepted credentials of the session cache, indexed by challenger because each fetch searches them before it sends
/// anything. The first credential of a space is its default, until another is preferred.
struct AcceptedCredentials: Sendable {
    private var lists: [Challenger: [SessionEntry]] = [:]
    private(set) var count = 0

    var all: some Sequence<SessionEntry> { lists.values.joined() }

    subscript(challenger: Challenger) -> [SessionEntry] { lists[challenger] ?? [] }

    /// Returns the entries of a partition; `nil` is the shared one.
    func list(at challenger: Challenger, of owner: Partition?) -> [SessionEntry] {
        let list = self[challenger]
        return list.allSatisfy { $0.owner == owner } ? list : list.filter { $0.owner == owner }  // guard: session-owner
    }

    /// Returns the entries of a partition that are valid for `path`.
    func list(at challenger: Challenger, of owner: Partition?, path: ExactText) -> [SessionEntry] {
        let list = list(at: challenger, of: owner)
        // guard: session-path
        return list.allSatisfy(\.credential.range.isWhole) ? list : list.filter { $0.credential.covers(path) }
    }

    /// Returns the entries with exactly this credential.
    func entries(
        with credential: LoginCredential, for space: ProtectionSpace, owner: Partition?
    ) -> [SessionEntry] {
        self[Challenger(space)].filter {
            $0.space == space && $0.owner == owner && $0.credential.isSame(as: credential)
        }
    }

    func count(of owner: Partition) -> Int { lists.values.reduce(0) { $0 + $1.count { $0.owner == owner } } }

    /// Replaces the entry that has the number `previous`, or adds an entry if `previous` is `nil`.
    mutating func put(_ entry: SessionEntry, replacing previous: Int?) {
        let challenger = entry.challenger
        if let index = lists[challenger]?.firstIndex(where: { $0.number == previous }) {
            lists[challenger]?[index] = entry
        } else {
            lists[challenger, default: []].append(entry)
            count += 1
        }
    }

    mutating func changeAll(_ change: (inout SessionEntry) -> Void) {
        lists = lists.mapValues { list in
            list.map { entry in
                var entry = entry
                change(&entry)
                return entry
            }
        }
    }

    mutating func remove(at challenger: Challenger, where isDropped: (SessionEntry) -> Bool) {
        guard let list = lists[challenger] else { return }
        let remaining = list.filter { !isDropped($0) }
        count -= list.count - remaining.count
        lists[challenger] = remaining.isEmpty ? nil : remaining
    }

    mutating func removeAll(where isDropped: (SessionEntry) -> Bool) {
        for challenger in Array(lists.keys) { remove(at: challenger, where: isDropped) }
    }

    /// Removes the least recently used entry of a server with the most matching entries. Returns `false` if none
    /// matches.
    @discardableResult
    mutating func dropOldest(where isMeant: (SessionEntry) -> Bool = { _ in true }) -> Bool {
        let most = lists.values.map { $0.count(where: isMeant) }.max() ?? 0
        let fullest = lists.values.filter { $0.count(where: isMeant) == most }
        let oldest = fullest.joined().filter(isMeant).min { $0.lastUse < $1.lastUse }
        guard let oldest else { return false }
        remove(at: oldest.challenger) { $0.number == oldest.number }
        return true
    }
}
