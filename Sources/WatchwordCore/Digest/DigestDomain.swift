internal import WatchwordProtocol

/// Where else the answer to a challenge is good (RFC 7616 section 3.3, `domain`).
///
/// The list can only make the protection space smaller than the server that sent it: places of other origins are left out,
/// because a server must not widen its own reach (security rule D16).
struct DigestDomain: Sendable, Equatable {
    private struct Place: Equatable {
        /// `nil` for the server that the challenge came from.
        let origin: Origin?
        /// In the canonical form of `FetchURL`.
        let prefix: ExactText
    }

    private let places: [Place]

    /// URIs with spaces between them, each absolute or a path from the root; what is neither is left out. `nil` when there
    /// are none, which means the whole server.
    init?(_ text: String?) {
        let uris = (text ?? "").split { $0 == " " || $0 == "\t" }
        guard !uris.isEmpty else { return nil }
        places = uris.compactMap { Self.place(String($0)) }
    }

    /// How much of `path` on `origin` one of the places covers, in whole segments; `nil` when it is outside of all. Places with
    /// a query cover no path.
    func matchLength(of path: ExactText, at origin: Origin) -> Int? {
        places.filter { ($0.origin ?? origin) == origin && LoginCredential.path($0.prefix, covers: path) }
            .map(\.prefix.utf8.count).max()
    }

    private static func place(_ uri: String) -> Place? {
        if uri.hasPrefix("/") && !uri.hasPrefix("//") {
            guard let parts = try? URLComponentText.components(of: uri[...]) else { return nil }
            return parts.query == nil
                ? Place(origin: nil, prefix: ExactText(URLComponentText.removingDotSegments(parts.path))) : nil
        }
        guard let url = try? FetchURL(uri), url.query == nil else { return nil }
        return Place(origin: url.origin, prefix: url.path)
    }
}
