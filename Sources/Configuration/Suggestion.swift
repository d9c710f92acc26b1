/// Suggests known names for a misspelt one.
enum Suggestion {
    /// Names longer than this are not compared.
    private static let longest = 64

    /// Returns the option most similar to a path, compared by key or, in any table, by name; `nil` if none is similar.
    static func option(for path: String) -> ConfigurationOption? {
        let name = path.split(separator: ".").last.map(String.init) ?? path
        return nearest(to: path, among: Settings.options) { option in
            let byName = distance(name, option.name, limit: limit(for: name)).map { $0 + 1 }
            return [distance(path, option.key, limit: limit(for: path)), byName].compactMap(\.self).min()
        }
    }

    /// Returns the known name most similar to a name; `nil` if none is similar.
    static func name(for name: String, among known: [String]) -> String? {
        nearest(to: name, among: known) { distance(name, $0, limit: limit(for: name)) }
    }

    private static func nearest<Candidate>(
        to name: String, among candidates: [Candidate], by distance: (Candidate) -> Int?
    ) -> Candidate? {
        guard name.utf8.count <= longest else { return nil }
        return candidates.compactMap { candidate in distance(candidate).map { (candidate, $0) } }
            .min { $0.1 < $1.1 }?.0
    }

    /// The largest distance that counts as similar: a third of the length, at least 1.
    private static func limit(for name: String) -> Int { max(1, name.utf8.count / 3) }

    /// The edit distance: the number of bytes to insert, delete, replace or swap with a neighbour; `nil` above `limit`.
    static func distance(_ left: String, _ right: String, limit: Int) -> Int? {
        let (left, right) = (Array(left.utf8), Array(right.utf8))
        guard abs(left.count - right.count) <= limit else { return nil }
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for i in left.indices {
            var row = [i + 1]
            for j in right.indices {
                var best = min(last[j + 1] + 1, row[j] + 1, last[j] + (left[i] == right[j] ? 0 : 1))
                if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
                    best = min(best, beforeLast[j - 1] + 1)
                }
                row.append(best)
            }
            (beforeLast, last) = (last, row)
        }
        return last[right.count] <= limit ? last[right.count] : nil
    }
}
