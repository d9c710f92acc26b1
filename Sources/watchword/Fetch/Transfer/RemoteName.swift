/// The file name that `-O` takes from a URL: the last segment of its path, not decoded, as in curl.
enum RemoteName {
    /// Returns `nil` if the segment is empty, `.` or `..`, or contains control characters.
    static func of(_ url: String) -> String? {
        let place = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
        let path = place.prefix { $0 != "?" && $0 != "#" }
        guard let slash = path.lastIndex(of: "/") else { return nil }
        let name = path[path.index(after: slash)...]
        let isSafe = !name.isEmpty && name != "." && name != ".." && !name.utf8.contains { $0 < 0x20 || $0 == 0x7F }
        return isSafe ? String(name) : nil
    }
}
