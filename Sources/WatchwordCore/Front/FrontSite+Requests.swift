public import WatchwordProtocol

extension FrontSite {
    /// Whether a program may send a request with `method` to `path`, a request target in origin form.
    ///
    /// The path is compared with the list after its dot segments are resolved. A path that servers may read differently is
    /// not allowed if there is a list: one with an encoded slash, backslash or NUL byte, also if encoded twice, or with
    /// parameters of a dot segment. The request has to be sent with the path of a `FetchURL`, whose dot segments are resolved.
    public func allows(method: String, path: String) -> Bool {
        // guard: front-methods
        guard methods?.contains(where: { ExactText($0) == ExactText(method) }) ?? true else { return false }
        guard let paths else { return true }
        // A combining mark would hide a separator from the comparison of characters.
        guard path.utf8.allSatisfy({ $0 < 0x80 }) else { return false }  // guard: front-path-in-ascii
        let withoutQuery = path.prefix { $0 != "?" }
        // guard: front-hidden-slash
        guard withoutQuery.hasPrefix("/"), Self.isUnambiguous(withoutQuery) else { return false }
        // guard: front-dot-segments
        let resolved = ExactText(URLComponentText.removingDotSegments(String(withoutQuery)))
        return paths.contains { allowed in
            let allowed = ExactText(allowed)
            return allowed.hasSuffix("/") ? resolved.hasPrefix(allowed) : resolved == allowed
        }
    }

    private static func isUnambiguous(_ path: Substring) -> Bool {
        let lowercased = path.asciiLowercased
        let hidden = ["%2f", "%5c", "%00", "%252f", "%255c", "%252e", "\\", "..;", "%2e;"]
        return path.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F } && !hidden.contains { lowercased.contains($0) }
    }
}

/// The number of requests that a front of a site still accepts.
public struct FrontBudget: Sendable, Equatable {
    /// The requests left; `nil` for no limit.
    public private(set) var remaining: Int?

    public init(_ site: FrontSite) { remaining = site.budget }

    /// Counts one request.
    /// - Throws: `FrontRefusal` with status 429 if the budget is used up.
    public mutating func take() throws(FrontRefusal) {
        guard let left = remaining else { return }
        guard left > 0 else {  // guard: front-budget
            throw FrontRefusal(
                429, "budget", "the budget of requests for this front is used up; open the front again to continue")
        }
        remaining = left - 1
    }
}
