/// The share that one server or proxy has of a bounded table: it cannot take the places of all others (security rule X4).
enum OriginShare {
    /// How many of `limit` entries may be about one server.
    static func entries(of limit: Int) -> Int { min(limit, max(16, limit / 8)) }

    /// The index of the entry that makes room for the newest one, which is the last; `nil` while there is room.
    ///
    /// Of a server that has more than its share the oldest entry goes, else the oldest of a server that has most.
    static func surplus<Entry>(in entries: [Entry], limit: Int, of challenger: (Entry) -> Challenger) -> Int? {
        guard let newest = entries.last.map(challenger) else { return nil }
        if entries.count(where: { challenger($0) == newest }) > self.entries(of: limit) {
            return entries.firstIndex { challenger($0) == newest }
        }
        guard entries.count > limit else { return nil }
        let counts = entries.reduce(into: [:]) { counts, entry in counts[challenger(entry), default: 0] += 1 }
        let most = counts.values.max()
        return entries.firstIndex { counts[challenger($0)] == most }
    }
}
