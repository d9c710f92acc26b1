/// A part of a server: a path and everything below it, with exceptions.
public struct PathRange: Sendable, Hashable {
    /// The path at and below which the range begins; `nil` for the whole server. Begins with "/", but is never "/" itself.
    public var path: ExactText?
    /// The paths, at or below `path`, that are not in the range: tokens for them come from elsewhere.
    public var excluded: [ExactText]

    public init(_ path: ExactText? = nil, excluding excluded: [ExactText] = []) {
        (self.path, self.excluded) = (path, excluded)
    }

    /// Whether the path `requested` is in the range. `/a` does not cover `/ab`, nor a path that may lead out of it.
    public func covers(_ requested: ExactText) -> Bool {
        guard !isWhole else { return true }
        // guard: path-hidden-segments
        guard Self.path(path ?? "/", covers: requested) && !HiddenSegments.leadUp(in: requested) else { return false }
        return !excluded.contains { Self.path($0, covers: requested) }
    }

    /// Whether each path is in the range.
    public var isWhole: Bool { path == nil && excluded.isEmpty }

    /// Whether `requested` equals `path` or is below it.
    public static func path(_ path: ExactText, covers requested: ExactText) -> Bool {
        requested == path || requested.hasPrefix(path.hasSuffix("/") ? path : "\(path)/")  // guard: keyring-path
    }
}
