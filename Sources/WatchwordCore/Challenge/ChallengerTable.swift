/// The entries of one challenger in a `ChallengerTable`, oldest first.
protocol ChallengerList: RandomAccessCollection, MutableCollection where Index == Int {
    init()
    mutating func append(_ entry: Element)
    mutating func remove(at index: Int) -> Element
    mutating func removeAll(where isDropped: (Element) throws -> Bool) rethrows
}

extension Array: ChallengerList {}

/// Entries that concern one server or proxy each. A search takes time for the entries of one challenger, however many
/// others there are, and no challenger can evict the entries of all others (SECURITY-RULES X4).
struct ChallengerTable<Entries: ChallengerList & Sendable>: Sendable {
    typealias Entry = Entries.Element

    private struct List: Sendable {
        var entries = Entries()
        /// The number of the last entry that was appended, counted over the whole table.
        var newest = 0
    }

    private var lists: [Challenger: List] = [:]
    private(set) var count = 0
    private var lastNumber = 0

    var isEmpty: Bool { count == 0 }

    /// All entries: those of one challenger in the order in which they were appended, the challengers in no order.
    var all: some Sequence<Entry> { lists.values.lazy.flatMap(\.entries) }

    /// The entries of one challenger. To add entries, use `append` or `change`.
    subscript(challenger: Challenger) -> Entries {
        get { lists[challenger]?.entries ?? Entries() }
        _modify {
            var none = Entries()
            guard let index = lists.index(forKey: challenger) else {
                yield &none
                return
            }
            count -= lists.values[index].entries.count
            yield &lists.values[index].entries
            count += lists.values[index].entries.count
            if lists.values[index].entries.isEmpty { lists.remove(at: index) }
        }
    }

    /// Changes the entries of one challenger, of which there may be none before or afterwards.
    @discardableResult
    mutating func change<Result>(at challenger: Challenger, _ change: (inout Entries) -> Result) -> Result {
        if let index = lists.index(forKey: challenger) {
            count -= lists.values[index].entries.count
            let result = change(&lists.values[index].entries)
            let left = lists.values[index].entries.count
            count += left
            if left == 0 { lists.remove(at: index) }
            return result
        }
        var list = List()
        let result = change(&list.entries)
        count += list.entries.count
        if !list.entries.isEmpty { lists[challenger] = list }
        return result
    }

    mutating func append(_ entry: Entry, at challenger: Challenger) {
        lastNumber += 1
        lists[challenger, default: List()].entries.append(entry)
        lists[challenger]?.newest = lastNumber
        count += 1
    }

    /// Appends an entry. If the challenger now exceeds its share of `limit`, its oldest entry is removed. Otherwise, if
    /// the table is too large, the oldest entry of the challenger with the most entries is removed; among several such
    /// challengers, the one whose last entry is the oldest. Returns the removed entry.
    @discardableResult
    mutating func append(_ entry: Entry, at challenger: Challenger, limit: Int) -> Entry? {
        append(entry, at: challenger)
        if self[challenger].count > Self.share(of: limit) {  // guard: share-of-a-server
            return self[challenger].remove(at: 0)
        }
        guard count > limit else { return nil }
        let fullest = lists.max {
            ($0.value.entries.count, $1.value.newest) < ($1.value.entries.count, $0.value.newest)
        }
        return fullest.map { self[$0.key].remove(at: 0) }
    }

    /// Returns the matching entries of the challengers that have the most of them.
    func entriesOfFullest(where matches: (Entry) -> Bool) -> [Entry] {
        let most = lists.values.reduce(1) { max($0, $1.entries.count(where: matches)) }
        let fullest = lists.values.filter { $0.entries.count(where: matches) == most }
        return fullest.flatMap { $0.entries.filter(matches) }
    }

    /// Returns how many of `limit` entries may belong to one server or proxy.
    static func share(of limit: Int) -> Int { min(limit, max(16, limit / 8)) }

    /// Removes the matching entries. Lists without one are only read, because this also runs when nothing has changed.
    /// - Parameter isDropped: called once for each entry.
    mutating func removeAll(where isDropped: (Entry) -> Bool) {
        let dropped = lists.compactMap { challenger, list in
            let places = list.entries.indices.filter { isDropped(list.entries[$0]) }
            return places.isEmpty ? nil : (challenger, places)
        }
        for (challenger, places) in dropped {
            var (position, rest) = (0, places[...])
            self[challenger].removeAll { _ in
                defer { position += 1 }
                guard rest.first == position else { return false }
                rest.removeFirst()
                return true
            }
        }
    }

    /// Changes entries, which keep their places.
    mutating func changeAll(_ change: (inout Entry) -> Void) {
        for list in lists.values.indices {
            for index in lists.values[list].entries.indices { change(&lists.values[list].entries[index]) }
        }
    }
}
