/// Finds the known name that a misspelt one resembles most.
public enum SimilarName {
    /// Names longer than this are not compared.
    private static let longest = 64

    /// Returns the most similar name; `nil` if none is similar.
    public static func nearest(to name: String, among known: [String]) -> String? {
        nearest(to: name, among: known) { distance(name, $0) }
    }

    /// Returns the candidate with the smallest distance; `nil` if none is similar.
    public static func nearest<Candidate>(
        to name: String, among candidates: [Candidate], by distance: (Candidate) -> Int?
    ) -> Candidate? {
        guard name.utf8.count <= longest else { return nil }
        return candidates.compactMap { candidate in distance(candidate).map { (candidate, $0) } }
            .min { $0.1 < $1.1 }?.0
    }

    /// Returns the edit distance from a misspelt name: the number of bytes to insert, delete, replace or swap with a neighbour;
    /// `nil` above a third of the length of `name`, but at least 2, or 1 for fewer than five bytes.
    public static func distance(_ name: String, _ other: String) -> Int? {
        let limit = max(name.utf8.count < 5 ? 1 : 2, name.utf8.count / 3)
        let (left, right) = (Array(name.utf8), Array(other.utf8))
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
