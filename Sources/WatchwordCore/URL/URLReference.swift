internal import WatchwordProtocol

extension FetchURL {
    /// Resolves the reference of a `Location` field against this URL (RFC 3986 section 5.2.2).
    /// - Throws: `FetchFailure` of kind `badRedirect`.
    public func resolving(_ reference: String) throws(FetchFailure) -> FetchURL {
        do {
            return try resolved(reference.percentEncodingMarks)
        } catch {
            throw FetchFailure(.badRedirect, "invalid redirect from \(origin.text): \(error.text)")
        }
    }

    private func resolved(_ reference: String) throws(FetchFailure) -> FetchURL {
        if Self.hasScheme(reference) { return try FetchURL(reference) }
        if reference.hasPrefix("//") { return try FetchURL("\(origin.scheme.rawValue):\(reference)") }
        let parts = try URLComponentText.components(of: reference)
        if parts.path.isEmpty { return FetchURL(origin: origin, path: path, query: parts.query ?? query) }
        let merged = parts.path.hasPrefix("/") ? parts.path : "\(URLComponentText.directory(of: path))\(parts.path)"
        return FetchURL(origin: origin, reference: (merged, parts.query))
    }

    /// Whether `reference` starts with a scheme and its colon (RFC 3986 section 3.1).
    private static func hasScheme(_ reference: String) -> Bool {
        guard let end = reference.firstIndex(where: { ":/?#".contains($0) }), reference[end] == ":" else {
            return false
        }
        let scheme = reference[..<end].utf8
        guard let first = scheme.first, (0x61...0x7A).contains(first.asciiLowercased) else { return false }
        return scheme.allSatisfy { byte in
            (0x61...0x7A).contains(byte.asciiLowercased) || (0x30...0x39).contains(byte)
                || [0x2B, 0x2D, 0x2E].contains(byte)
        }
    }
}
