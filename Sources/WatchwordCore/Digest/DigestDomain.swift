internal import WatchwordProtocol

/// The URIs for which the answer to a challenge is valid (RFC 7616 section 3.3, `domain`).
///
/// The list can only restrict the protection space: URIs of other origins never match, because a server must not extend
/// its own reach (SECURITY-RULES D16).
struct DigestDomain: Sendable, Equatable {
    private struct Place: Equatable {
        /// `nil` for the server that sent the challenge.
        let origin: Origin?
        /// The path in the canonical form of `FetchURL`.
        let prefix: ExactText
    }

    private let places: [Place]
    /// The paths at or below which the answer may be valid.
    var paths: [ExactText] { places.map(\.prefix) }

    /// Parses URIs separated by spaces, each absolute or an absolute path; others are ignored. Returns `nil` for an
    /// empty list, which means the whole server.
    init?(_ text: String?) {
        let uris = (text ?? "").percentEncodingMarks.split { $0 == " " || $0 == "\t" }
        guard !uris.isEmpty else { return nil }
        places = uris.compactMap { Self.place(String($0)) }
    }

    /// Returns the length in bytes of the longest prefix that covers `path` on `origin` in whole segments; `nil` if
    /// there is none. URIs with a query cover no path.
    /// - Parameter isPossible: see `SessionEntry.matchLength`.
    func matchLength(of path: ExactText, at origin: Origin, isPossible: Bool = false) -> Int? {
        let covers = isPossible ? PathRange.path(_:mayCover:) : PathRange.path(_:covers:)
        let places = !isPossible && HiddenSegments.leadUp(in: path) ? places.filter { $0.prefix == "/" } : places
        // guard: digest-domain-origin
        return places.filter { ($0.origin ?? origin) == origin && covers($0.prefix, path) }
            .map { PathRange.length(of: $0.prefix) }.max()
    }

    private static func place(_ uri: String) -> Place? {
        if uri.hasPrefix("/") && !uri.hasPrefix("//") {
            guard let parts = try? URLComponentText.components(of: uri) else { return nil }
            return parts.query == nil
                ? Place(origin: nil, prefix: ExactText(URLComponentText.removingDotSegments(parts.path))) : nil
        }
        guard let url = try? FetchURL(uri), url.query == nil else { return nil }
        return Place(origin: url.origin, prefix: url.path)
    }
}
