/// The name that `-O` takes from a URL: what follows the last slash of its path, as it is written there, as with curl.
enum RemoteName {
    /// `nil` for a URL that has none, or one that would mean a folder.
    static func of(_ url: String) -> String? {
        let place = url.firstRange(of: "://").map { url[$0.upperBound...] } ?? url[...]
        let path = place.prefix { $0 != "?" && $0 != "#" }
        guard let slash = path.lastIndex(of: "/") else { return nil }
        let name = path[path.index(after: slash)...]
        let isSafe = !name.isEmpty && name != "." && name != ".." && !name.utf8.contains { $0 < 0x20 || $0 == 0x7F }
        return isSafe ? String(name) : nil
    }
}
