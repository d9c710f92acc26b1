internal import WatchwordProtocol

/// The accepted credentials of the session cache, which each fetch searches before it sends anything. The first
/// credential of a space is its default, until another is preferred.
typealias AcceptedCredentials = ChallengerTable<IndexedLogins<AcceptedLogin>>

extension IndexedLogins<AcceptedLogin> {
    /// Returns the logins of a partition; `nil` is the shared one.
    func list(of owner: Partition?) -> [AcceptedLogin] { list(at: Array(indices), of: owner) }

    /// Returns the logins of a partition that matter at `path`, in whatever way a server reads it, and perhaps others.
    func list(of owner: Partition?, near path: ExactText) -> [AcceptedLogin] {
        list(at: positions(near: path), of: owner)
    }

    func list(of owner: Partition?, in space: ProtectionSpace) -> [AcceptedLogin] {
        list(at: positions(in: [space.realm]), of: owner).filter { $0.space == space }
    }

    private func list(at positions: [Int], of owner: Partition?) -> [AcceptedLogin] {  // guard: session-owner
        let found = self[positions]
        return found.allSatisfy { $0.value.owner == owner } ? found : found.filter { $0.value.owner == owner }
    }

    /// Returns the positions of the logins of a partition in this space.
    func positions(
        of owner: Partition?, in space: ProtectionSpace, where matches: (AcceptedLogin) -> Bool
    ) -> [Int] {
        positions(in: [space.realm]).filter {
            self[$0].space == space && self[$0].owner == owner && matches(self[$0])
        }
    }
}

extension IndexedLogins<StagedCredential> {
    /// Returns the credentials for this space, of all partitions.
    func list(for space: ProtectionSpace) -> [StagedCredential] {
        positions(in: [space.realm, nil]).map { self[$0] }.filter { $0.pattern.matches(space) }
    }
}

extension [AcceptedLogin] {
    /// Returns those that are valid for `path`.
    func covering(_ path: ExactText) -> [AcceptedLogin] {  // guard: session-path
        allSatisfy { $0.value.credential.range.isWhole } ? self : filter { $0.credential.covers(path) }
    }
}

extension AcceptedCredentials {
    /// Changes the entries with exactly this credential.
    mutating func change(
        _ credential: LoginCredential, for space: ProtectionSpace, owner: Partition?,
        _ change: (inout SessionEntry) -> Void
    ) {
        self.change(at: Challenger(space)) { logins in
            for place in logins.positions(of: owner, in: space, where: { $0.credential.isSame(as: credential) }) {
                logins[place].change(change)
            }
        }
    }

    func count(of owner: Partition) -> Int { all.reduce(0) { $0 + ($1.owner == owner ? 1 : 0) } }

    /// Removes the least recently used of these entries. Returns `false` if there are none.
    @discardableResult
    mutating func dropOldest(of entries: some Sequence<Entry>) -> Bool {
        guard let oldest = entries.min(by: { $0.lastUse < $1.lastUse })?.value else { return false }
        self[oldest.challenger].removeAll { $0.number == oldest.number }
        return true
    }
}
