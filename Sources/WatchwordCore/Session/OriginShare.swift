/// The share of a bounded table that one server or proxy may use, so it cannot evict all others (SECURITY-RULES X4).
enum OriginShare {
    /// Returns how many of `limit` entries may belong to one server or proxy.
    static func entries(of limit: Int) -> Int { min(limit, max(16, limit / 8)) }

    /// Returns the index of the entry to remove after the last one was appended; `nil` while there is room.
    ///
    /// If the server of the newest entry exceeds its share, the oldest entry of that server is removed; otherwise the
    /// oldest entry of a server with the most entries.
    static func surplus<Entry>(in entries: [Entry], limit: Int, of challenger: (Entry) -> Challenger) -> Int? {
        guard let newest = entries.last.map(challenger) else { return nil }
        if entries.count(where: { challenger($0) == newest }) > self.entries(of: limit) {  // guard: share-of-a-server
            return entries.firstIndex { challenger($0) == newest }
        }
        guard entries.count > limit else { return nil }
        let counts = entries.reduce(into: [:]) { counts, entry in counts[challenger(entry), default: 0] += 1 }
        let most = counts.values.max()
        return entries.firstIndex { counts[challenger($0)] == most }
    }
}
