internal import WatchwordProtocol

/// The accepted credentials of the session cache, which each fetch searches before it sends anything. The first
/// credential of a space is its default, until another is preferred.
typealias AcceptedCredentials = ChallengerTable<Boxed<SessionEntry>>

extension AcceptedCredentials {
    /// Returns the entries of a partition; `nil` is the shared one.
    func list(at challenger: Challenger, of owner: Partition?) -> [Entry] {  // guard: session-owner
        let list = self[challenger]
        return list.allSatisfy { $0.owner == owner } ? list : list.filter { $0.owner == owner }
    }

    /// Returns the entries of a partition that are valid for `path`.
    func list(at challenger: Challenger, of owner: Partition?, path: ExactText) -> [Entry] {  // guard: session-path
        let list = list(at: challenger, of: owner)
        return list.allSatisfy(\.value.credential.range.isWhole) ? list : list.filter { $0.credential.covers(path) }
    }

    /// Returns the entries with exactly this credential.
    func entries(with credential: LoginCredential, for space: ProtectionSpace, owner: Partition?) -> [SessionEntry] {
        self[Challenger(space)].filter {
            $0.space == space && $0.owner == owner && $0.credential.isSame(as: credential)
        }.map(\.value)
    }

    func count(of owner: Partition) -> Int { all.reduce(0) { $0 + ($1.owner == owner ? 1 : 0) } }

    /// Replaces the entry that has the number `previous`, or adds an entry if `previous` is `nil`.
    mutating func put(_ entry: SessionEntry, replacing previous: Int?) {
        let challenger = entry.challenger
        if let previous, let index = self[challenger].firstIndex(where: { $0.number == previous }) {
            self[challenger][index] = Boxed(entry)
        } else {
            append(Boxed(entry), at: challenger)
        }
    }

    /// Removes the least recently used of these entries. Returns `false` if there are none.
    @discardableResult
    mutating func dropOldest(of entries: [Entry]) -> Bool {
        guard let oldest = entries.min(by: { $0.lastUse < $1.lastUse })?.value else { return false }
        self[oldest.challenger].removeAll { $0.number == oldest.number }
        return true
    }
}
